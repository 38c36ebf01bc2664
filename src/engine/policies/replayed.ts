import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import {
  type Policy,
  type PolicyCapabilities,
  type PolicyDescription,
  PromptTooLong,
  type Sample,
  type SampleKey,
  type SampleRequest,
  type Scores,
} from '../../base/core/policy.ts'
import {
  digestOf,
  type RecordedError,
  type RecordedSample,
  readSample,
  readScore,
  sampleName,
  scoreName,
} from './cassette.ts'
import { makeNth } from './nth.ts'
import { asObject, type Fields, shown } from './transport/reading.ts'

/** All that a cassette holds. */
interface Recorded {
  readonly file: string
  readonly policy: string
  readonly capabilities: PolicyCapabilities
  readonly samples: Map<string, RecordedSample>
  readonly scores: Map<string, Scores>
  description: PolicyDescription | undefined
}

/** Opens a policy that answers what a cassette recorded, by task, member, branch and turn. */
export async function openReplay(file: string): Promise<Policy> {
  const recorded = await readCassette(file)
  const { capabilities } = recorded
  const countOf = makeNth()
  return {
    name: recorded.policy,
    capabilities,
    async sample(request, { signal }) {
      signal.throwIfAborted()
      return find(recorded, request, countOf(request.key))
    },
    ...(capabilities.several && {
      async sampleSeveral(request, seeds, { signal }) {
        signal.throwIfAborted()
        const nth = countOf(request.key, seeds.length)
        return seeds.map((_, index) => find(recorded, request, nth + index))
      },
    }),
    ...(capabilities.score && {
      async score(ids, from, { temperature }, { signal }) {
        signal.throwIfAborted()
        const scores = recorded.scores.get(scoreName(ids, from, temperature))
        if (scores) return scores
        throw new Error(`${file} has no scores of these ${ids.length} tokens from place ${from}.`)
      },
    }),
    ...(recorded.description && { describe: async () => recorded.description! }),
    async [Symbol.asyncDispose]() {},
  }
}

function find(recorded: Recorded, { key, prompt }: SampleRequest, nth: number): Sample {
  const { file, samples } = recorded
  const found = samples.get(sampleName(key, nth))
  if (!found)
    throw new Error(`${file} has no answer for ${keyText(key, nth)}${nearest(recorded, key)}`)
  if (found.prompt !== digestOf(prompt.ids)) {
    throw new Error(
      `${file} was recorded with another prompt for ${keyText(key, nth)}: the tokens differ. ` +
        'Replay with the environment, template and seed that were recorded.',
    )
  }
  if (found.sample) return found.sample
  throw recordedError(found.error ?? { name: 'Error', message: 'nothing was recorded' })
}

/** An error as it was; one that decides how the attempt ends is of its own class again. */
function recordedError({ name, message }: RecordedError): Error {
  if (name === 'PromptTooLong') return new PromptTooLong(message)
  const error = new Error(message)
  error.name = name
  return error
}

function keyText({ task, member, branch, turn }: SampleKey, nth: number): string {
  const path = branch === '' ? '' : `, branch "${branch}"`
  const again = nth === 0 ? '' : ` (sample ${nth + 1} of it)`
  return `task "${task}", member ${member}${path}, turn ${turn}${again}`
}

/** What is recorded for the same task, for the error message. */
function nearest({ samples }: Recorded, { task, member }: SampleKey): string {
  const names = [...samples.keys()].map(
    name => JSON.parse(name) as [string, number, string, number],
  )
  const ofTask = names.filter(name => name[0] === task)
  if (ofTask.length === 0) return '. It has none for this task.'
  const turns = ofTask.filter(name => name[1] === member).map(name => name[3])
  if (turns.length === 0) return '. It has this task, but not this member.'
  return `. For this member it has turns ${Math.min(...turns)} to ${Math.max(...turns)}.`
}

async function readCassette(file: string): Promise<Recorded> {
  let recorded: Recorded | undefined
  let torn: unknown
  let number = 0
  const lines = createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })
  for await (const line of lines) {
    // Only the last line may be broken: recording was interrupted there.
    if (torn !== undefined) throw torn
    number++
    const where = `${file}, line ${number}`
    try {
      const fields = asObject(JSON.parse(line), where, 'a line')
      if (recorded) take(recorded, fields, where)
      else recorded = readHeader(fields, file)
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause
      torn = new Error(`${where} is not JSON: ${cause.message}`, { cause })
    }
  }
  if (recorded) return recorded
  throw torn ?? new Error(`${file} is empty, not a cassette.`)
}

function readHeader(fields: Fields, file: string): Recorded {
  const { espalier, format, policy } = fields
  if (espalier !== 'cassette' || format !== 1) {
    throw new Error(`${file} is not a cassette of format 1, it begins with ${shown(fields)}.`)
  }
  return {
    file,
    policy: String(policy),
    capabilities: asObject(
      fields.capabilities,
      file,
      'capabilities',
    ) as unknown as PolicyCapabilities,
    samples: new Map(),
    scores: new Map(),
    description: undefined,
  }
}

function take(recorded: Recorded, fields: Fields, where: string): void {
  if (fields.sample !== undefined) {
    recorded.samples.set(JSON.stringify(fields.sample), readSample(fields, where))
  } else if (fields.score !== undefined) {
    recorded.scores.set(JSON.stringify(fields.score), readScore(fields, where))
  } else if (fields.describe !== undefined) {
    recorded.description = asObject(fields.describe, where, 'describe') as PolicyDescription
  } else throw new Error(`${where}: expected "sample", "score" or "describe", got ${shown(fields)}`)
}
