// ends with: Error
// within: 900 ms
export default async () => {
  // Formatting its digits would block the executor's thread, which reads unhandled rejections, for minutes.
  Promise.reject(2n ** (2n ** 26n));
  await null;
};
