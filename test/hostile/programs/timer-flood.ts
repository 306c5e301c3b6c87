// ends with: Error
// within: 700 ms
export default async () => {
  for (let count = 0; count < 1e6; count++) setTimeout(() => {}, 0);
};
