// ends with: Error
// within: 600 ms
export default () => {
  (Error as { prepareStackTrace?: unknown }).prepareStackTrace = () => {
    for (;;) Math.sqrt(2);
  };
  throw new Error("plain");
};
