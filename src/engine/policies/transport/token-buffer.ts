/** Ids and their log-probabilities, gathered while they come; both lie in one piece of memory. */
export class TokenBuffer {
  #ids: Int32Array
  #logprobs: Float32Array
  #length = 0

  constructor(capacity = 64) {
    const memory = new ArrayBuffer(capacity * 8)
    this.#ids = new Int32Array(memory, 0, capacity)
    this.#logprobs = new Float32Array(memory, capacity * 4, capacity)
  }

  get length(): number {
    return this.#length
  }

  /** A view of the ids so far. */
  get ids(): Int32Array {
    return this.#length === this.#ids.length ? this.#ids : this.#ids.subarray(0, this.#length)
  }

  /** A view of the log-probabilities so far. */
  get logprobs(): Float32Array {
    const all = this.#logprobs
    return this.#length === all.length ? all : all.subarray(0, this.#length)
  }

  push(id: number, logprob: number): void {
    if (this.#length === this.#ids.length) this.#grow()
    this.#ids[this.#length] = id
    this.#logprobs[this.#length] = logprob
    this.#length++
  }

  #grow(): void {
    const larger = new TokenBuffer(Math.max(64, this.#length * 2))
    larger.#ids.set(this.#ids)
    larger.#logprobs.set(this.#logprobs)
    this.#ids = larger.#ids
    this.#logprobs = larger.#logprobs
  }
}
