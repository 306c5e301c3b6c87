# Your functions in an image of their own: copy this file beside your functions/ folder, and build there.
#
#   docker build -f functions.Dockerfile -t registry.example.com/my-functions:1 .
#
# Packages that handlers import are bundled when the runtime starts: install them into functions/node_modules before.
ARG WATCHFIRE_IMAGE=ghcr.io/watchfire/watchfire:0.1.0
FROM ${WATCHFIRE_IMAGE}
COPY functions/ ./
