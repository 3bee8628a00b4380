/* Refuses to be compiled for processors whose words begin with the highest byte. */
#ifndef RECORDIO_LITTLE_ENDIAN_H
#define RECORDIO_LITTLE_ENDIAN_H

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error recordio-iterators needs a little-endian processor (x86-64, aarch64 and others): record files are little-endian, and so are the words that its decoders and kernels read; big-endian ones are not supported
#endif

#endif
