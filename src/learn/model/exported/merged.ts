import type { Tensor } from '../tensor.ts'
import type { WeightsFile } from '../weights-file.ts'

/** The two factors of a weight, and what their product is multiplied by. */
interface Change {
  /** Rank × inputs. */
  readonly down: Float32Array
  /** Outputs × rank. */
  readonly up: Float32Array
  readonly rank: number
  readonly inputs: number
}

/** A low-rank change, as PEFT has it. */
interface Low {
  readonly shape: { readonly rank: number; readonly alpha: number }
  readonly tensors: readonly Tensor[]
}

/** The weights of a base with an adapter worked in: W + (alpha / rank) · B A, wherever it has factors. */
export function mergedWeights(base: WeightsFile, { shape, tensors }: Low): WeightsFile {
  const scale = shape.alpha / shape.rank
  const changes = changesOf(tensors, shape.rank)
  const strange = [...changes.keys()].find(name => !base.tensors.has(name))
  if (strange !== undefined) throw new Error(`${base.source} has no ${strange}, which it changes.`)
  const facts = [...base.tensors].map(([name, { shape: sizes, type }]) => {
    return [name, { shape: sizes, type: changes.has(name) ? 'f32' : type }] as const
  })
  return {
    source: base.source,
    tensors: new Map(facts),
    read(name, from, target) {
      base.read(name, from, target)
      const change = changes.get(name)
      if (change) addProduct(change, scale, { from, target })
    },
    readHalves: base.readHalves,
    [Symbol.dispose]: () => base[Symbol.dispose](),
  }
}

function changesOf(tensors: readonly Tensor[], rank: number): ReadonlyMap<string, Change> {
  const ups = new Map(tensors.map(tensor => [tensor.name, tensor]))
  const changes = new Map<string, Change>()
  for (const { name, shape, data } of tensors) {
    const [, weight] = /^base_model\.model\.(.+)\.lora_A\.weight$/.exec(name) ?? []
    const up = ups.get(name.replace('lora_A', 'lora_B'))
    if (weight === undefined || !up) continue
    changes.set(`${weight}.weight`, { down: data, up: up.data, rank, inputs: shape[1]! })
  }
  return changes
}

/** Adds whole rows or parts of rows of scale · B A. */
function addProduct(
  { down, up, rank, inputs }: Change,
  scale: number,
  { from, target }: { readonly from: number; readonly target: Float32Array },
): void {
  for (let done = 0; done < target.length; ) {
    const row = Math.floor((from + done) / inputs)
    const first = from + done - row * inputs
    const count = Math.min(inputs - first, target.length - done)
    for (let k = 0; k < rank; k++) {
      const factor = scale * up[row * rank + k]!
      const line = k * inputs + first
      for (let at = 0; at < count; at++) target[done + at]! += factor * down[line + at]!
    }
    done += count
  }
}
