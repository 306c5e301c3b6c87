# Your functions in an image of their own: copy this file beside your functions/ folder, and build there.
#
#   npx watchfire build
#   docker build -f functions.Dockerfile -t registry.example.com/my-functions:1 .
#
# `watchfire build` writes build/: scripts with all that they import, and a lock. The image compiles nothing, and runs just those.
#
# A tag can be moved, so the runtime's image is named by its digest. The copy of this file on a release's page has that of the release. To take
# a newer release, take its copy. This one names none: the digest is known once the image is built. `docker buildx imagetools inspect` prints it:
#
#   docker build -f functions.Dockerfile --build-arg WATCHFIRE_IMAGE=ghcr.io/watchfire/watchfire:0.1.0@sha256:... -t registry.example.com/my-functions:1 .
ARG WATCHFIRE_IMAGE
FROM ${WATCHFIRE_IMAGE}
COPY build/ ./
