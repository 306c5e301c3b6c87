// ends with: WF_SANDBOX_CPU_BUDGET WF_SANDBOX_KILLED WF_SANDBOX_MEMORY
// within: 3500 ms
// unstoppable
export default async () => {
  const error = new Error("no");
  Object.defineProperty(error, "stack", {
    get: () => {
      for (;;);
    },
  });
  Promise.reject(error);
  await null;
};
