/** A named array of numbers, row-major. */
export interface Tensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly data: Float32Array
}
