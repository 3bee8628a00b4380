#!/bin/bash -eu
# One program for each target: libfuzzer.py with the name of the target in it.
RECORDIO_FACES=1 pip3 install ".[tfrecord,libsvm]"
cd tests/fuzz
for folder in corpus/*/; do
    name=$(basename "$folder")
    sed "s/sys.argv\[1\]/\"$name\"/; s/sys.argv\[2:\]/sys.argv[1:]/" libfuzzer.py > "fuzz_$name.py"
    compile_python_fuzzer "fuzz_$name.py" --add-data "corpus/$name:corpus/$name"
    zip -jq "$OUT/fuzz_${name}_seed_corpus.zip" "$folder"*
done
