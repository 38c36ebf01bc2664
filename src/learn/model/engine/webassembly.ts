// The part of WebAssembly that the engine uses; Node's types do not declare it. The names are our own,
// so that they do not clash with the browser's types if both are loaded.

/** Kernels that are compiled. */
export interface CompiledKernels {
  readonly [Symbol.toStringTag]: string
}

/** The memory that threads share. */
export interface SharedMemory {
  readonly buffer: SharedArrayBuffer
  grow(pages: number): number
}

interface WebAssemblyValue {
  readonly Memory: new (options: { initial: number; maximum: number; shared: true }) => SharedMemory
  readonly Instance: new (
    module: CompiledKernels,
    imports: { env: { memory: SharedMemory; abort: () => void } },
  ) => { readonly exports: Readonly<Record<string, unknown>> }
  readonly Module: new (bytes: Uint8Array) => CompiledKernels
  readonly validate: (bytes: Uint8Array) => boolean
}

/** The runtime's WebAssembly. */
export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyValue }).WebAssembly

/** What the kernels offer; addresses and sizes are in bytes. */
export interface Kernels {
  configure(thread: number): void
  /** Runs the first `count` jobs of the list on so many threads; 0 when a thread has failed. */
  run(count: number, threads: number): number
  serve(): void
  keptBytes(tokens: number, rows: number, keep: number): number
  scratchBytes(tokens: number, backward: number): number
  /** How many of so many columns lie in panels of twelve; the others lie in panels of eight. */
  wideColumns(columns: number): number
}

/** The kernels over a memory. */
export function instantiate(module: CompiledKernels, memory: SharedMemory): Kernels {
  const abort = () => {
    throw new Error('The kernels stopped: an assertion of theirs does not hold.')
  }
  const instance = new webAssembly.Instance(module, { env: { memory, abort } })
  return instance.exports as unknown as Kernels
}
