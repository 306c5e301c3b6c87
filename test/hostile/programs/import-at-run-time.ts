// ends with: TypeError Error
// within: 700 ms
export default () => new Function("return import('node:fs')")();
