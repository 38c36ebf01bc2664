// The part of WebAssembly that the engine uses; Node's types leave it to the browser's.
declare global {
  namespace WebAssembly {
    interface Module {
      readonly [Symbol.toStringTag]: string
    }
    interface Memory {
      readonly buffer: SharedArrayBuffer
      grow(pages: number): number
    }
    interface Instance {
      readonly exports: Readonly<Record<string, unknown>>
    }
  }
}

interface WebAssemblyValue {
  readonly Memory: new (options: {
    initial: number
    maximum: number
    shared: true
  }) => WebAssembly.Memory
  readonly Instance: new (
    module: WebAssembly.Module,
    imports: { env: { memory: WebAssembly.Memory; abort: () => void } },
  ) => WebAssembly.Instance
  readonly compile: (bytes: Uint8Array) => Promise<WebAssembly.Module>
  readonly validate: (bytes: Uint8Array) => boolean
}

/** The runtime's WebAssembly. */
export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyValue }).WebAssembly

/** What the kernels offer; addresses and sizes are in bytes. */
export interface Kernels {
  configure(thread: number): void
  /** Runs the first `count` jobs of the list on all threads; 0 when a thread has failed. */
  run(count: number): number
  serve(): void
  keptBytes(tokens: number, rows: number, ownBlocks: number, retain: number): number
  scratchBytes(tokens: number, backward: number): number
}

/** The kernels over a memory. */
export function instantiate(module: WebAssembly.Module, memory: WebAssembly.Memory): Kernels {
  const abort = () => {
    throw new Error('The kernels stopped: an assertion of theirs does not hold.')
  }
  const instance = new webAssembly.Instance(module, { env: { memory, abort } })
  return instance.exports as unknown as Kernels
}
