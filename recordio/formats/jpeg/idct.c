/* Inverse transforms of pairs of blocks, with AVX2; nothing is done where that is not there. */
#ifdef HAVE_LIBJPEG_TURBO

#include "idct.h"
#include "idct_pair.h"
#include "entropy.h"

#if SIMD_X86

/* What the library's chooser of transforms begins with. */
typedef struct {
    void (*start_pass)(j_decompress_ptr);
    jpeg_transform transforms[MAX_COMPONENTS];
} idct_head;

SIMD_AVX2 static void idct_pair(const JCOEF* blocks, const UINT16* factors, JSAMPARRAY out,
                                JDIMENSION column) {
    __m256i row[8];
    idct_columns_of_pair(blocks, factors, row);
    idct_rows_of_pair(row, out, column, 2 * DCTSIZE);
}

static void transform(j_decompress_ptr library, jpeg_component_info* component, JCOEFPTR block,
                      JSAMPARRAY out, JDIMENSION column) {
    jpeg_idct* idct = library->client_data;
    const int number = component->component_index;
    if (block == idct->done) {
        idct->done = NULL;
    } else if (column / DCTSIZE % idct->group[number] + 1 < idct->group[number] &&
               column + 2 * DCTSIZE <= idct->ends[number]) {
        idct_pair(block, component->quant_table->quantval, out, column);
        idct->done = block + DCTSIZE2;
    } else {
        idct->done = NULL;
        idct->transforms[number](library, component, block, out, column);
    }
}

void jpeg_idct_install(jpeg_idct* idct, j_decompress_ptr library, JDIMENSION first) {
    idct_head* head = (idct_head*)(void*)library->idct;
    const int several = jpeg_has_multiple_scans(library);
    int i;
    if (library->dct_method != JDCT_ISLOW) return;
    library->client_data = idct;
    idct->done = NULL;
    for (i = 0; i < library->num_components; i++) {
        const jpeg_component_info* component = &library->comp_info[i];
        /* Of the output, which may be scaled where blocks of colours keep all of their size. */
        const JDIMENSION step = (JDIMENSION)((library->num_components == 1 ? 1 : library->max_h_samp_factor) *
                                             SMALLEST_BLOCK_SIZE(library));
        const JDIMENSION across = (JDIMENSION)(library->num_components == 1 ? 1 : component->h_samp_factor);
        idct->group[i] = several ? 0 : (JDIMENSION)component->MCU_width;
        if (!component->component_needed || BLOCK_SIZE(component) != DCTSIZE || idct->group[i] == 1 ||
            component->quant_table == NULL || head->transforms[i] == transform)
            continue;
        if (several) idct->group[i] = (JDIMENSION)1 << 30; /* blocks of whole rows */
        idct->ends[i] = (component->width_in_blocks - first * across / step) * DCTSIZE;
        idct->transforms[i] = head->transforms[i];
        head->transforms[i] = transform;
    }
}

#else

void jpeg_idct_install(jpeg_idct* idct, j_decompress_ptr library, JDIMENSION first) {
    (void)idct, (void)library, (void)first;
}

#endif
#endif /* HAVE_LIBJPEG_TURBO */
