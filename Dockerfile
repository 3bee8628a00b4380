# The demo in a container: docker build --tag recordio-iterators . && docker run recordio-iterators
FROM python:3.13-slim
RUN apt-get update && apt-get install --yes --no-install-recommends \
    gcc libc6-dev make libjpeg62-turbo-dev libwebp-dev
COPY . /source
WORKDIR /source
RUN make .venv/installed
CMD ["make", "demo"]
