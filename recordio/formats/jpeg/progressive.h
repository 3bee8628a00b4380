/* The scans of progressive JPEG images, decoded in the place of libjpeg-turbo's entropy decoder.
 *
 * A scan is decoded as a whole when the library asks for its first MCU, into the library's own arrays of
 * coefficients; what it asks for afterwards is there already.  The library reads all that lies between
 * scans, checks their order, warns, and has prepared its decoder for the scan when ours begins.
 *
 * Ours decodes sound data only.  Where a scan makes no sense, what it has changed is undone, and the
 * library's decoder does that scan and all others of the image.  So whatever is wrong has the outcome
 * that it has with the library alone.  A scan can be undone because coefficients that it brings for the
 * first time were zero before, and those that it refines had zeros in place of the bit; ours decodes
 * nothing else, and the library warns of anything else.
 *
 * What cannot change a pixel is not read: the rows below those that are wanted, all of a component that
 * is not looked at, and AC coefficients where one pixel is made of a block.  The end of the scan is then
 * found by its marker.  The library alone would get to the same marker, whatever lies before it, so that
 * only warnings of damage there are missed.  There are three things that a caller must look for afterwards,
 * and then decode everything: that the data ended, of which the library says more if it has read all
 * before it; that bits of coefficients are missing, which makes it look at the rows below; and that
 * something else made no sense, as its decoder then needs all coefficients to go on.
 *
 * Supposed about the inside of the library is what entropy.h supposes, nothing more.
 */
#ifndef ITERATORS_JPEG_PROGRESSIVE_H
#define ITERATORS_JPEG_PROGRESSIVE_H

#include "entropy.h"

typedef struct jpeg_progressive jpeg_progressive;

/* NULL if there is no memory. */
jpeg_progressive* jpeg_progressive_new(void);
void jpeg_progressive_free(jpeg_progressive* progressive); /* NULL is allowed */

/* The next array of coefficients that the library has asked for. */
void jpeg_progressive_array(jpeg_progressive* progressive, jvirt_barray_ptr array);

/* As the functions of entropy.h. */
void jpeg_progressive_kernels(jpeg_progressive* progressive, int portable);
void jpeg_progressive_install(jpeg_progressive* progressive, j_decompress_ptr library);
void jpeg_progressive_rows(jpeg_progressive* progressive, JDIMENSION count);
int jpeg_progressive_passed_over(const jpeg_progressive* progressive);
void jpeg_progressive_reset(jpeg_progressive* progressive);
enum jpeg_entropy_state jpeg_progressive_in_use(const jpeg_progressive* progressive);
void jpeg_progressive_probe(jpeg_progressive* progressive);

#endif
