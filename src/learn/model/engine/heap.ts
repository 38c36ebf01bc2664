import { webAssembly } from './webassembly.ts'

const page = 65_536

/** Where the first array lies; below are the control words, the plan and the job list. */
const start = 32_768

/** Four gigabytes of address space: only pages that are used take real memory. */
const maximumPages = 65_536

/**
 * The memory that all threads share. Space is taken once and never given back, except for the
 * arena at its end, which is as large as the largest need so far.
 */
export class Heap {
  readonly memory = new webAssembly.Memory({ initial: 1, maximum: maximumPages, shared: true })
  i32 = new Int32Array(this.memory.buffer)
  f32 = new Float32Array(this.memory.buffer)
  f64 = new Float64Array(this.memory.buffer)
  readonly #isDry: boolean
  #end = start

  /** A dry heap only counts what is taken: what would be written behind its first page is lost. */
  constructor({ isDry = false }: { readonly isDry?: boolean } = {}) {
    this.#isDry = isDry
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#end
  }

  /** Takes space for good and gives its address. */
  take(bytes: number): number {
    const address = this.#end
    this.#end += align(bytes)
    this.#reach(this.#end)
    return address
  }

  /** The address of an arena of at least this size; the next call gives the same place again. */
  arena(bytes: number): number {
    this.#reach(this.#end + bytes)
    return this.#end
  }

  #reach(end: number): void {
    const missing = Math.ceil((end - this.memory.buffer.byteLength) / page)
    if (missing <= 0 || this.#isDry) return
    try {
      this.memory.grow(missing)
    } catch (cause) {
      const wanted = Math.ceil(end / 2 ** 20)
      throw new RangeError(`The model cannot have ${wanted} MiB of memory; 4096 are the most.`, {
        cause,
      })
    }
    this.i32 = new Int32Array(this.memory.buffer)
    this.f32 = new Float32Array(this.memory.buffer)
    this.f64 = new Float64Array(this.memory.buffer)
  }
}

function align(bytes: number): number {
  return Math.ceil(bytes / 64) * 64
}
