/** An image with its registry, as a container runtime reads it: `nginx` is `docker.io/library/nginx`. */
export function fullName(image: string): string {
  const [first = "", ...rest] = image.split("/");
  if (rest.length === 0) return `docker.io/library/${image}`;
  // Only a registry has a dot or a port, or is localhost.
  return /[.:]/.test(first) || first === "localhost" ? image : `docker.io/${image}`;
}
