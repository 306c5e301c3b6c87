// ends with: WF_SANDBOX_CPU_BUDGET
// within: 700 ms
export default async () => {
  await null;
  while (true) Math.sqrt(2);
};
