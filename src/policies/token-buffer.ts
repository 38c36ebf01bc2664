/** Ids and their log-probabilities, gathered while they come. */
export class TokenBuffer {
  #ids = new Int32Array(64)
  #logprobs = new Float32Array(64)
  #length = 0

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
    const ids = new Int32Array(this.#length * 2)
    const logprobs = new Float32Array(this.#length * 2)
    ids.set(this.#ids)
    logprobs.set(this.#logprobs)
    this.#ids = ids
    this.#logprobs = logprobs
  }
}
