/** How the numbers of a tensor lie in memory: whole floats, or halves that become exact floats. */
export type WeightType = 'f32' | 'f16' | 'bf16'

/** What a file says of a tensor before it is read. */
export interface TensorFacts {
  /** Row-major, outermost first. */
  readonly shape: readonly number[]
  /** What `read` gives: a quantised tensor says what it is dequantised to. */
  readonly type: WeightType
}

/**
 * Named tensors of a model folder or file, under the names that Hugging Face gives them and in its
 * order of rows. Only the list is read at first; numbers are read piece by piece, so that a model never lies in
 * memory twice. It is read by the thread that owns a model, which does nothing else meanwhile: reading is synchronous.
 */
export interface WeightsFile extends Disposable {
  /** The folder or file, for errors. */
  readonly source: string
  readonly tensors: ReadonlyMap<string, TensorFacts>
  /** Fills `target` with numbers of a tensor from its number `from` on; one that is not finite is an error. */
  read(name: string, from: number, target: Float32Array): void
  /** Fills `target` with halves as they lie in the file, for tensors of the types f16 and bf16. */
  readHalves(name: string, from: number, target: Uint16Array): void
}
