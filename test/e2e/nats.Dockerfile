ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY nats-server /nats-server
ENTRYPOINT ["/nats-server"]
