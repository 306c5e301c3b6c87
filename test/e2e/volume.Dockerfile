FROM scratch
COPY build/ /
