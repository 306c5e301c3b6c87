// Types of the libraries whose own types Node's resolution does not find, as far as the guest uses them.

declare module "event-target-shim" {
  export class Event<Type extends string = string> {
    constructor(type: Type);
    readonly type: Type;
  }
  export class EventTarget {
    addEventListener(type: string, listener: (event: Event) => void, options?: { once?: boolean }): void;
    removeEventListener(type: string, listener: (event: Event) => void): void;
    dispatchEvent(event: Event): boolean;
  }
}

declare module "whatwg-url" {
  export const URL: unknown;
  export const URLSearchParams: unknown;
}
