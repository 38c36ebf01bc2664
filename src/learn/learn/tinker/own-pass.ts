import type { Call } from '../../../base/core/call.ts'
import { normalisers, offsetsOf } from '../../../base/math/batch.ts'
import { pathLoss } from '../../../base/math/paths.ts'
import { pathsOf } from '../../../run/rows/paths.ts'
import type { MemberRow } from '../../../run/rows/row-record.ts'
import { type Datum, ratioStart, toSurrogate } from '../../../run/sinks/formats/tinker.ts'
import type { OwnLoss } from './losses.ts'
import { combined, inChunks, type Learner, type PassSums } from './pass.ts'
import { withProvenance } from './provenance.ts'

/** A row sent to the server, and the offset of its tokens among those of all rows. */
interface Placed {
  readonly member: MemberRow
  readonly start: number
}

/**
 * A pass with a loss that the server does not have. The server runs forward and returns log-probabilities;
 * the loss and its slopes over every trajectory's path are computed here; the server runs backward with
 * the slopes as weights of its cross-entropy, whose plain sum has exactly this gradient. Rows contain
 * each token once. The scale is that of a sum over tokens, as with the server's own losses.
 */
export async function ownPass(
  learner: Learner,
  { members, loss }: { readonly members: readonly MemberRow[]; readonly loss: OwnLoss },
  call: Call,
): Promise<PassSums> {
  const lengths = members.map(({ row }) => row.ids.length)
  const starts = offsetsOf(lengths)
  const { paths } = pathsOf(members.map(({ row }, index) => ({ row, length: lengths[index]! })))
  const placed = members
    .map((member, index) => ({ member, start: starts[index]! }))
    .filter(({ member }) => isTeaching(member))
  const oldLogprobs = new Float64Array(starts.at(-1)!)
  const logprobs = new Float64Array(starts.at(-1)!)
  const unknown: number[] = []
  const forwarded = await forward(learner, placed, call)
  members.forEach((member, index) => {
    const then = ratioStart(member)
    const now = forwarded.get(member)
    for (let token = 0; token < lengths[index]!; token++) {
      const place = starts[index]! + token
      const known = now?.[token - 1] ?? then[token]!
      logprobs[place] = Number.isNaN(known) ? 0 : known
      oldLogprobs[place] = Number.isNaN(then[token]!) ? logprobs[place] : then[token]!
      if (Number.isNaN(then[token]!)) unknown.push(place)
    }
  })
  const { loss: value, gradient } = pathLoss(loss.loss, paths, { logprobs, oldLogprobs })
  // A token that was sampled without a number is not learned from.
  for (const place of unknown) gradient[place] = 0
  const size = normalisers(paths).tokens
  const slopes = gradient.map(each => -each * size)
  const metrics = await backward(learner, { placed, slopes }, call)
  return { ...compare(placed, { logprobs, oldLogprobs }), loss: value, metrics }
}

/** The server's current log-probabilities of the rows, from their second token on. */
async function forward(
  { model, passes, provenance }: Learner,
  placed: readonly Placed[],
  call: Call,
): Promise<ReadonlyMap<MemberRow, readonly number[]>> {
  const byMember = new Map<MemberRow, readonly number[]>()
  let done = 0
  const known = placed.map(({ member }) => withProvenance(toSurrogate(member), member, provenance))
  for (const data of inChunks(known)) {
    const { outputs } = await passes.run({ ...passOf(model, data), forwardOnly: true }, call)
    data.forEach((datum, index) => {
      const numbers = outputs[index]?.logprobs ?? []
      const { length } = datum.loss_fn_inputs.target_tokens!.data
      if (numbers.length !== length) {
        throw new Error(`forward returned ${numbers.length} log-probabilities of ${length} targets`)
      }
      byMember.set(placed[done + index]!.member, numbers)
    })
    done += data.length
  }
  return byMember
}

async function backward(
  { model, passes, provenance }: Learner,
  { placed, slopes }: { readonly placed: readonly Placed[]; readonly slopes: Float64Array },
  call: Call,
): Promise<Readonly<Record<string, number>>> {
  const metrics: Readonly<Record<string, number>>[] = []
  const data = placed.map(({ member, start }) => {
    const own = slopes.subarray(start, start + member.row.ids.length)
    return withProvenance(toSurrogate(member, own), member, provenance)
  })
  for (const chunk of inChunks(data)) {
    metrics.push((await passes.run(passOf(model, chunk), call)).metrics)
  }
  return combined(metrics)
}

function passOf(model: Learner['model'], data: readonly Datum[]) {
  return { modelId: model.id, seqId: model.next(), data, loss: 'cross_entropy' }
}

/** Whether any token of a row has an advantage other than zero. */
function isTeaching({ row }: MemberRow): boolean {
  return row.passages.some(({ value }) => value.some(({ advantage }) => advantage !== 0))
}

/** How far the log-probabilities of trained tokens are from those that they were sampled with. */
function compare(
  placed: readonly Placed[],
  numbers: { readonly logprobs: Float64Array; readonly oldLogprobs: Float64Array },
): Pick<PassSums, 'difference' | 'furthest' | 'tokens'> {
  const sums = { difference: 0, furthest: 0, tokens: 0 }
  for (const { member, start } of placed) {
    member.row.mask.forEach((bit, token) => {
      if (bit === 0) return
      const apart = numbers.oldLogprobs[start + token]! - numbers.logprobs[start + token]!
      sums.difference += apart
      sums.furthest = Math.max(sums.furthest, Math.abs(apart))
      sums.tokens++
    })
  }
  return sums
}
