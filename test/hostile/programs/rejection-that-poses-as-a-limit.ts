// ends with: Error
// within: 300 ms
export default async () => {
  Promise.reject(new Error("Script execution timed out."));
  await null;
};
