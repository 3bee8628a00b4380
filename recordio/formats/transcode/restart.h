/* How far apart restart markers should be, so that random crops are decoded with the least work.
 *
 * A decoder begins a row of a crop at the last marker before it, or goes on from the end of the row
 * above if that is nearer: MCUs between are decoded for nothing.  More markers mean less of that but
 * more bytes, and each takes some time.
 */
#ifndef ITERATORS_JPEG_RESTART_H
#define ITERATORS_JPEG_RESTART_H

#include <stdint.h>

/* Bytes that a restart marker costs: itself, the filling before it, and differences of DC coefficients
 * to zero instead of to a neighbour. */
#define RESTART_BYTES 3.0
/* As many bytes could be decoded in the time that passing a marker takes. */
#define RESTART_WORK 2.0
/* A byte more in the file weighs as much as so many bytes to decode. */
#define RESTART_BYTE_WEIGHT 4.0
/* Images with a shorter side than this are taken for what is read as a whole. */
#define RESTART_SHORTEST_SIDE 160

#define RESTART_CROPS 16

/* Random resized crops as providers draw them (8 to 100 % of the area, ratio 3:4 to 4:3), spread evenly:
 * left, top, width, height in 1/256 of the image. */
static const uint8_t restart_crops[RESTART_CROPS][4] = {
    {20, 4, 155, 227}, {33, 39, 172, 117}, {14, 16, 231, 217}, {127, 70, 96, 132},
    {2, 25, 194, 220}, {18, 85, 177, 156}, {0, 1, 255, 205},   {104, 25, 91, 98},
    {89, 0, 150, 255}, {6, 52, 172, 139},  {0, 38, 255, 190},  {74, 67, 100, 164},
    {47, 4, 186, 250}, {27, 4, 224, 140},  {0, 4, 255, 230},   {57, 52, 75, 94},
};

/* MCUs decoded for nothing before a row of a crop, on average over rows.  `gap`: those from the end of
 * the row above on.  Where markers stand at the beginning of every row of MCUs, as they do if `restart`
 * divides it, there are no more than `left`. */
static inline double restart_overshoot(int restart, int mcus_per_row, double left, double gap) {
    const double last = restart - 1.0;
    if (restart == 0) return gap;
    if (mcus_per_row % restart == 0) gap = left < gap ? left : gap;
    if (last <= gap) /* every position before the row is as likely as any other */
        return last / 2;
    return (gap * (gap + 1) / 2 + (last - gap) * gap) / restart;
}

/* What decoding a crop costs that was drawn at random, in bytes to decode, except for what is in it. */
static inline double restart_cost(int restart, int mcus_per_row, int mcu_rows, double mcu_bytes) {
    const double mcus = (double)mcus_per_row * mcu_rows;
    double work = 0, passed = 0;
    int i;
    for (i = 0; i < RESTART_CROPS; i++) {
        const double left = restart_crops[i][0] * mcus_per_row / 256;
        const double above = (double)(restart_crops[i][1] * mcu_rows / 256) * mcus_per_row;
        const int width = restart_crops[i][2] * mcus_per_row / 256 + 1;
        const double rows = restart_crops[i][3] * mcu_rows / 256 + 1;
        const double gap = mcus_per_row - width;
        const double each = restart_overshoot(restart, mcus_per_row, left, gap);
        const double first = restart_overshoot(restart, mcus_per_row, left, above + left);
        work += first + (rows - 1) * each;
        if (restart > 0) passed += rows * (width + each) / restart;
    }
    work = (work * mcu_bytes + passed * RESTART_WORK) / RESTART_CROPS;
    return restart > 0 ? work + mcus / restart * RESTART_BYTES * RESTART_BYTE_WEIGHT : work;
}

/* MCUs between restart markers for an image whose scan has this many bytes; 0: better none. */
static inline int choose_restart(int width, int height, int mcus_per_row, int mcu_rows, int64_t bytes) {
    const double mcu_bytes = (double)bytes / ((double)mcus_per_row * mcu_rows);
    const int most = mcus_per_row < 64 ? mcus_per_row : 64;
    int restart, best = 0;
    double least;
    if (width < RESTART_SHORTEST_SIDE || height < RESTART_SHORTEST_SIDE) return 0;
    least = restart_cost(0, mcus_per_row, mcu_rows, mcu_bytes);
    for (restart = 2; restart <= most + 1; restart++) {
        const int tried = restart <= most ? restart : mcus_per_row;
        const double cost = restart_cost(tried, mcus_per_row, mcu_rows, mcu_bytes);
        if (cost < least) {
            least = cost;
            best = tried;
        }
    }
    return best;
}

#endif
