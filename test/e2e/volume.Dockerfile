FROM scratch
COPY functions/ /
