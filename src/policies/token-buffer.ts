/** Ids and their log-probabilities, gathered while they come. */
export class TokenBuffer {
  #ids: Int32Array
  #logprobs: Float32Array
  #length = 0

  constructor(capacity = 64) {
    this.#ids = new Int32Array(capacity)
    this.#logprobs = new Float32Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  /** A view of the ids so far. */
  get ids(): Int32Array {
    return this.#ids.subarray(0, this.#length)
  }

  /** A view of the log-probabilities so far. */
  get logprobs(): Float32Array {
    return this.#logprobs.subarray(0, this.#length)
  }

  push(id: number, logprob: number): void {
    if (this.#length === this.#ids.length) this.#grow()
    this.#ids[this.#length] = id
    this.#logprobs[this.#length] = logprob
    this.#length++
  }

  #grow(): void {
    const capacity = Math.max(64, this.#length * 2)
    const ids = new Int32Array(capacity)
    const logprobs = new Float32Array(capacity)
    ids.set(this.#ids)
    logprobs.set(this.#logprobs)
    this.#ids = ids
    this.#logprobs = logprobs
  }
}
