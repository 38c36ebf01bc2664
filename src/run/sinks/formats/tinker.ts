import { lossKind } from '../../../base/math/registry.ts'
import { isUnscored, type MemberRow } from '../../rows/row-record.ts'
import { tokenCredit, trainedMask } from '../credited-row.ts'
import { type ExportGroup, RefusedError } from '../format.ts'
import { rowsFor, type Training } from '../forms.ts'
import { lineFormat } from '../line-format.ts'
import { makeTelling } from '../numbers.ts'

/** A tensor as Tinker's API has it. */
export interface TensorData {
  readonly data: Int32Array | Float32Array
  readonly dtype: 'int64' | 'float32'
  readonly shape: readonly number[]
}

/** What one sequence is trained on, as Tinker's API has it. */
export interface Datum {
  readonly model_input: {
    readonly chunks: readonly { readonly type: 'encoded_text'; readonly tokens: Int32Array }[]
  }
  readonly loss_fn_inputs: Readonly<Record<string, TensorData>>
}

const training: Training = {
  form: 'paths',
  because: 'Tinker clips every token by its own ratio, which is exact where each path is a row',
  sequence: 'row',
  importance: 'tokens',
}

/**
 * Tinker's `Datum`, one per line (tinker/types/datum.py of the SDK, 0.36). Everything is shifted by
 * one: the model reads all tokens but the last, and the targets are all but the first. The sum over
 * tokens is taken with the advantages given, so advantage times weight is exact, trees included;
 * tokens that are not trained have advantage 0.
 */
export const tinker = lineFormat({
  name: 'tinker',
  summary: "Tinker's Datum for importance_sampling, ppo and cispo, one per line",
  carries: ['tokens', 'advantages'],
  training,
  start({ lost, ...options }) {
    if (lossKind(options.loss) !== 'token') throw sumsOnly(options.loss)
    const telling = makeTelling(lost, 'tinker')
    return function* toData(source: ExportGroup) {
      for (const member of rowsFor({ name: 'tinker', training }, source.group, {
        ...options,
        lost,
      })) {
        if (member.row.ids.length < 2 || telling(member.tree) === 'untrained') continue
        yield toDatum(member)
      }
    }
  },
  loading: file => [
    'python:  import json; from tinker import types',
    `         rows = [json.loads(line) for line in open(${JSON.stringify(file)})]`,
    '         tensors = lambda row: {name: types.TensorData(**tensor) for name, tensor in row["loss_fn_inputs"].items()}',
    '         data = [types.Datum(model_input=types.ModelInput.model_validate(row["model_input"]), loss_fn_inputs=tensors(row)) for row in rows]',
  ],
})

function sumsOnly(loss: string): RefusedError {
  return new RefusedError(
    'tinker',
    `Tinker sums over tokens, and ${loss} averages each sequence first`,
    loss === 'grpo'
      ? 'Use --loss ppo, bnpo or cispo, or train with --trainer tinker:URL, which makes the means of a batch itself.'
      : 'Use --loss ppo, bnpo or cispo.',
  )
}

/** The log-probabilities from which ratios start: as sampled, or where importance ratios end. */
export function ratioStart({ row, member }: MemberRow): Float32Array {
  const weighed = isUnscored(member) ? undefined : member.importance
  return (weighed && weighed.ratios !== 'none' && row.others.proximal) || row.logprobs
}

/**
 * The datum of a row, its advantages times a factor; tokens without a log-probability are not trained.
 * `weights` are 1 for trained tokens, for servers that need them.
 */
export function toDatum(
  member: MemberRow,
  { factor = 1, weights = false }: { readonly factor?: number; readonly weights?: boolean } = {},
): Datum {
  const { ids } = member.row
  const logprobs = ratioStart(member)
  const credit = tokenCredit(member)
  const mask = trainedMask(member)
  const size = ids.length - 1
  const known = new Float32Array(size)
  const advantages = new Float32Array(size)
  const trained = new Float32Array(size)
  for (let token = 0; token < size; token++) {
    if (mask[token + 1] === 0 || Number.isNaN(logprobs[token + 1])) continue
    known[token] = logprobs[token + 1]!
    advantages[token] = factor * credit[token + 1]!
    trained[token] = 1
  }
  return {
    model_input: { chunks: [{ type: 'encoded_text', tokens: ids.subarray(0, size) }] },
    loss_fn_inputs: {
      target_tokens: { data: ids.subarray(1), dtype: 'int64', shape: [size] },
      logprobs: { data: known, dtype: 'float32', shape: [size] },
      advantages: { data: advantages, dtype: 'float32', shape: [size] },
      ...(weights && { weights: { data: trained, dtype: 'float32', shape: [size] } }),
    },
  }
}

/**
 * The datum of a row for the server's cross-entropy with a given gradient: `slopes` of the row's
 * tokens as weights, or none for a forward pass only.
 */
export function toSurrogate({ row: { ids } }: MemberRow, slopes?: Float64Array): Datum {
  const size = ids.length - 1
  const weights = slopes ? Float32Array.from(slopes.subarray(1)) : new Float32Array(size)
  return {
    model_input: { chunks: [{ type: 'encoded_text', tokens: ids.subarray(0, size) }] },
    loss_fn_inputs: {
      target_tokens: { data: ids.subarray(1), dtype: 'int64', shape: [size] },
      weights: { data: weights, dtype: 'float32', shape: [size] },
    },
  }
}
