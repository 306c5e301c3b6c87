// ends with: Error
// within: 900 ms
export default async () => {
  // To write it out in digits would keep the executor, whose thread reads what nobody heard, for minutes.
  Promise.reject(2n ** (2n ** 26n));
  await null;
};
