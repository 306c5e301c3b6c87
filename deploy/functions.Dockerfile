# Your functions in an image of their own: copy this file beside your functions/ folder, and build there.
#
#   npx watchfire build
#   docker build -f functions.Dockerfile -t registry.example.com/my-functions:1 .
#
# `watchfire build` writes build/: scripts with all that they import, and a lock. The image compiles nothing, and runs just those.
#
# A tag can be moved. Pin the image that you have looked at by its digest, which the release shows and `docker buildx imagetools inspect` prints:
#
#   docker build -f functions.Dockerfile --build-arg WATCHFIRE_IMAGE=ghcr.io/watchfire/watchfire@sha256:... -t registry.example.com/my-functions:1 .
ARG WATCHFIRE_IMAGE=ghcr.io/watchfire/watchfire:0.1.0
FROM ${WATCHFIRE_IMAGE}
COPY build/ ./
