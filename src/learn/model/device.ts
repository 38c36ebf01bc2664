import type { Adapter } from './adapter.ts'
import type { RowGradients, RowNumbers, RowOrder, UpdateOrder } from './protocol.ts'

/** One sequence's part of a step: its next tokens, behind those whose keys and values are there. */
export interface StepPart {
  /** The place of its keys and values. */
  readonly slot: number
  /** Tokens before these. */
  readonly position: number
  readonly ids: Int32Array
}

/**
 * What computes for a model: this processor, or a graphics card. Numbers are row-major float32; whoever drives it
 * decides what is computed when, and draws tokens from the logits by its own random numbers.
 */
export interface Device extends AsyncDisposable {
  readonly kind: 'cpu' | 'gpu'
  /** What was found, as people read it. */
  readonly description: string
  /** The logits behind the last token of every part, part after part. */
  step(parts: readonly StepPart[]): Promise<Float32Array>
  /** Copies the keys and values of a slot's first tokens to another slot. */
  copySlot(from: number, to: number, tokens: number): Promise<void>
  /** Log-probabilities and entropies of the wanted tokens; `keep` prepares for `backward`. */
  forward(rows: readonly RowOrder[], options: { readonly keep: boolean }): Promise<RowNumbers>
  /** Adds the gradient of the rows that went forward last to the adapter's. */
  backward(gradients: RowGradients): Promise<void>
  /** One step of AdamW on the adapter; gives the gradient's norm before it was clipped. */
  update(order: UpdateOrder): Promise<number>
  adapter(): Promise<Adapter>
  take(adapter: Adapter): Promise<void>
}
