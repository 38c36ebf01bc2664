import type { Message } from '@espalier/text'
import type { Dropped } from '../../../base/core/group.ts'
import type { Outcome } from '../../../base/core/outcome.ts'
import { checkLengths, type Fields, ReadError } from '../fields.ts'
import {
  type FormatReader,
  namedReward,
  plainReward,
  type ReadTrajectory,
  unknownParts,
} from '../reader.ts'
import { messagesIn, numbersIn, wordIn } from './checked.ts'
import { consecutive } from './consecutive.ts'
import { mergeRows, type TokenRow, toPath } from './token-rows.ts'

const statuses = ['pending', 'completed', 'truncated', 'aborted', 'failed'] as const

/** slime's samples: rows of one `rollout_id`, those of one group side by side. */
export const slimeReader: FormatReader = {
  name: 'slime',
  kind: 'lines',
  read: records =>
    readRows(records, {
      key: row => `${ours(row)?.text('trajectory') ?? row.integer('rollout_id')}`,
      row: readSample,
      sequence: row => ours(row)?.integer('row') ?? row.integer('index'),
      trajectory(rows, count) {
        const first = rows[0]!
        const known = ours(first)
        const status = wordIn(first, 'status', statuses)
        return {
          ...namesOf(known, `group-${first.integer('group_index')}`, count),
          messages: messageList(first, 'prompt'),
          reward: status === 'failed' ? null : plainReward(first.numberOrNull('reward')),
          advantage: known?.numberOrNull('advantage') ?? null,
          outcome: outcomeNamed(status),
        }
      },
    }),
}

function ours(row: Fields): Fields | undefined {
  if (!row.has('metadata')) return undefined
  const metadata = row.inner('metadata')
  return metadata.has('espalier') ? metadata.inner('espalier') : undefined
}

function readSample(row: Fields): TokenRow {
  const tokens = row.ids('tokens')
  const length = row.integer('response_length')
  if (length < 0 || length > tokens.length) {
    throw new ReadError(
      `${row.place}: response_length should be from 0 to ${tokens.length}, found ${length}`,
    )
  }
  const start = tokens.length - length
  const mask = row.has('loss_mask') ? row.bits('loss_mask') : new Uint8Array(length).fill(1)
  const logprobs = row.has('rollout_log_probs') ? row.logprobs('rollout_log_probs') : undefined
  const versions = row.has('weight_versions') ? row.list('weight_versions').map(Number) : []
  checkLengths(row.place, {
    response: tokens.subarray(start),
    loss_mask: mask,
    ...(logprobs && { rollout_log_probs: logprobs }),
  })
  const last = versions.at(-1)
  const advantage = ours(row)?.numberOrNull('advantage') ?? null
  return {
    prompt: tokens.subarray(0, start),
    response: tokens.subarray(start),
    mask: row.value.remove_sample === true ? mask.fill(0) : mask,
    ...(advantage !== null && { advantages: Array.from(mask, () => advantage) }),
    ...(logprobs && { logprobs }),
    ...(last !== undefined && Number.isInteger(last) && { version: last }),
  }
}

/** verl's outputs: rows of one trajectory side by side, groups by `uid`. */
export const verlReader: FormatReader = {
  name: 'verl',
  kind: 'lines',
  read: records => {
    let number = 0
    return readRows(records, {
      key: row => (row.has('espalier') ? row.inner('espalier').text('trajectory') : `${number++}`),
      sequence: row => (row.has('espalier') ? row.inner('espalier').integer('row') : 0),
      row: row => {
        const response = readResponse(row, { mask: 'response_mask', logprobs: 'response_logprobs' })
        if (!row.has('advantages')) return response
        const advantages = row.doubles('advantages')
        checkLengths(row.place, { response_ids: response.response, advantages })
        return { ...response, advantages }
      },
      trajectory(rows, count) {
        const first = rows[0]!
        const known = first.has('espalier') ? first.inner('espalier') : undefined
        const advantages = rows.flatMap(row =>
          row.has('advantages') ? [...row.doubles('advantages')] : [],
        )
        return {
          ...namesOf(known, first.has('uid') ? first.text('uid') : `group-${count}`, count),
          messages: messageList(first, 'raw_prompt'),
          reward: plainReward(first.numberOrNull('reward_score')),
          advantage: advantages.find(value => value !== 0) ?? (advantages.length > 0 ? 0 : null),
        }
      },
    })
  },
}

/** TRL's rows. */
export const trlReader: FormatReader = {
  name: 'trl',
  kind: 'lines',
  read: records => {
    let number = 0
    return readRows(records, {
      key: row => (row.has('trajectory') ? row.text('trajectory') : `${number++}`),
      sequence: row => (row.has('row') ? row.integer('row') : 0),
      row: row => {
        const names = { response: 'completion_ids', mask: 'env_mask', logprobs: 'logprobs' }
        const response = readResponse(row, names)
        const advantage = row.numberOrNull('advantage')
        return {
          ...response,
          ...(advantage !== null && { advantages: Array.from(response.mask, () => advantage) }),
          ...(row.has('model_version') && { version: row.integer('model_version') }),
        }
      },
      trajectory(rows, count) {
        const first = rows[0]!
        const group = first.has('task') ? first.text('task') : `group-${count}`
        const scores = first.has('rewards') ? numbersIn(first, 'rewards') : {}
        const messages = [...messageList(first, 'prompt'), ...messageList(first, 'completion')]
        return {
          ...namesOf(first.has('trajectory') ? first : undefined, group, count),
          messages,
          reward: namedReward(first.numberOrNull('reward'), scores),
          advantage: first.numberOrNull('advantage'),
        }
      },
    })
  },
}

/** SkyRL's entries: rows of a trajectory up to the one with `is_last_step`. */
export const skyrlReader: FormatReader = {
  name: 'skyrl',
  kind: 'lines',
  read: records => {
    let trajectory = 0
    let step = 0
    return readRows(records, {
      key(row) {
        const key = `${trajectory}`
        if (row.value.is_last_step !== false) trajectory++
        return key
      },
      sequence: () => step++,
      row: row =>
        readResponse(row, {
          prompt: 'prompt_token_ids',
          mask: 'loss_mask',
          logprobs: 'rollout_logprobs',
        }),
      trajectory(rows, count) {
        const last = rows.at(-1)!
        const named = last.has('trajectory_id') ? last.inner('trajectory_id') : undefined
        const group = named?.text('instance_id') ?? `group-${count}`
        const isError = last.has('stop_reason') && last.text('stop_reason') === 'error'
        const isCut = last.has('stop_reason') && last.text('stop_reason') === 'length'
        return {
          group,
          task: group,
          data: null,
          member: named?.integer('repetition_id') ?? count,
          reward: isError ? null : plainReward(last.numberOrNull('reward')),
          ...(isCut && { outcome: { kind: 'truncated', limit: 'tokens' } as const }),
          ...(isError && { outcome: outcomeNamed('failed') }),
        }
      },
    })
  },
}

interface RowFormat {
  /** Equal for the rows of one trajectory. */
  key(row: Fields): string
  /** Equal for the rows of one sequence, whose masks alone differ. */
  sequence(row: Fields): number
  row(row: Fields): TokenRow
  trajectory(
    rows: readonly Fields[],
    count: number,
  ): Pick<ReadTrajectory, 'group' | 'task' | 'data' | 'member' | 'reward'> & Partial<ReadTrajectory>
}

async function* readRows(
  records: AsyncIterable<Fields>,
  format: RowFormat,
): AsyncGenerator<ReadTrajectory> {
  let count = 0
  for await (const rows of consecutive(records, row => format.key(row))) {
    const sequences = new Map<number, TokenRow[]>()
    for (const row of rows) {
      const key = format.sequence(row)
      sequences.set(key, [...(sequences.get(key) ?? []), format.row(row)])
    }
    const merged = [...sequences.values()].map(mergeRows)
    const paths = merged.map(toPath)
    const read = { ...unknownParts, paths, ...format.trajectory(rows, count) }
    const isTrained = merged.some(({ mask }) => mask.includes(1))
    yield isTrained || read.reward === null ? read : { ...read, advantage: null, dropped: masked }
    count++
  }
}

/** Why a trajectory is not trained that a file has only as a partner in comparing rewards. */
const masked: Dropped = {
  filter: 'import',
  reason: 'no token of it is in the loss of the file',
  from: 'loss',
}

function readResponse(
  row: Fields,
  names: { prompt?: string; response?: string; mask: string; logprobs: string },
): TokenRow {
  const { prompt = 'prompt_ids', response: responseName = 'response_ids' } = names
  const response = row.ids(responseName)
  const mask = row.has(names.mask) ? row.bits(names.mask) : new Uint8Array(response.length).fill(1)
  const logprobs = row.has(names.logprobs) ? row.logprobs(names.logprobs) : undefined
  checkLengths(row.place, {
    [responseName]: response,
    [names.mask]: mask,
    ...(logprobs && { [names.logprobs]: logprobs }),
  })
  return { prompt: row.ids(prompt), response, mask, ...(logprobs && { logprobs }) }
}

/** The ids in a row of ours, or made-up ones for a foreign row. */
function namesOf(known: Fields | undefined, group: string, count: number) {
  const id = known?.has('trajectory') ? known.text('trajectory') : undefined
  const tree = id?.slice(0, id.lastIndexOf('/'))
  const own = tree?.slice(0, tree.lastIndexOf('/'))
  const member = tree === undefined ? Number.NaN : Number(tree.slice(tree.lastIndexOf('/') + 1))
  const name = own !== undefined && own !== '' ? own : group
  return {
    group: name,
    task: name,
    data: null,
    member: Number.isInteger(member) ? member : count,
    ...(id !== undefined && tree !== undefined && { id, tree }),
  }
}

function messageList(row: Fields, name: string): readonly Message[] {
  return Array.isArray(row.value[name]) ? messagesIn(row, name) : []
}

function outcomeNamed(status: string): Outcome {
  if (status === 'truncated') return { kind: 'truncated', limit: 'tokens' }
  if (status === 'aborted') return { kind: 'aborted', by: 'the run it came from' }
  if (status === 'failed') {
    return { kind: 'failed', boundary: 'environment', message: 'failed in the run it came from' }
  }
  return { kind: 'completed' }
}
