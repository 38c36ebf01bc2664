import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { plainSampling, type TokenSample } from '../../src/base/core/policy.ts'
import { openTinkerSession, type TinkerSession } from '../../src/engine/policies/tinker/session.ts'
import { openTinkerTrainer } from '../../src/learn/learn/tinker/trainer.ts'
import { chainGroup } from '../export-runs.ts'

/** Something that has to hold of a server, and whether it does. */
export interface Promised {
  readonly holds: boolean
  readonly words: string
}

const call = { signal: AbortSignal.timeout(600_000) }

/**
 * Drives a server of Tinker's API as `espalier train` does. What its model says is not looked at, so that
 * servers can be tried without one.
 */
export async function* driveTinker(
  url: string,
  { kind, key }: { readonly kind: string; readonly key: string },
): AsyncGenerator<Promised> {
  await using session = await openTinkerSession(url, { key })
  const { name } = session.kind
  yield { holds: name === kind, words: `the server is found to be ${name}` }
  yield* sample(session)
  yield await score(session)
  yield* train(session)
}

async function* sample({ policy }: TinkerSession): AsyncGenerator<Promised> {
  const request = {
    prompt: { ids: Int32Array.of(5, 6, 7), messages: [], tools: [] },
    maxTokens: 8,
    sampling: plainSampling,
    stopIds: [],
    stopStrings: [],
    seed: 4,
    key: { task: 't', member: 0, branch: '', turn: 0 },
    session: 's',
  }
  const { segment, finish } = (await policy.sample(request, call)) as TokenSample
  const { ids, logprobs } = segment
  const numbers = logprobs?.length === ids.length ? 'one number each' : 'no numbers'
  const words = `a sample has ${ids.length} tokens with ${numbers}, and ends by ${finish.kind}`
  yield { holds: ids.length > 0 && logprobs !== null, words }
  const several = await policy.sampleSeveral!(request, [1, 2, 3], call)
  yield { holds: several.length === 3, words: `one request draws ${several.length} samples` }
}

async function score({ policy }: TinkerSession): Promise<Promised> {
  if (!policy.score) return { holds: true, words: 'given tokens cannot be scored there' }
  const given = Int32Array.of(5, 6, 7, 8)
  const { logprobs } = await policy.score(given, 2, { temperature: 1 }, call)
  const words = `given tokens are scored, ${logprobs.length} of 2`
  return { holds: logprobs.length === 2, words }
}

async function* train(session: TinkerSession): AsyncGenerator<Promised> {
  await using trainer = await openTinkerTrainer(session, { learningRate: 1e-3, rank: 8 })
  const { version, metrics } = await trainer.step([chainGroup([1, 0, 0.25])], call)
  await trainer.publish?.(call)
  yield { holds: version === 1, words: `a step over ${metrics.trainedRows} rows is taken` }
  const told = Object.keys(metrics).filter(name => name.startsWith('server.'))
  const words = `its loss is ${metrics.loss}; it tells ${told.join(', ')}`
  yield { holds: Number.isFinite(metrics.loss) && told.length > 0, words }
  const folder = mkdtempSync(join(tmpdir(), 'espalier-driven-'))
  try {
    await trainer.save(folder, call)
    const { path } = JSON.parse(readFileSync(join(folder, 'tinker.json'), 'utf8'))
    yield { holds: typeof path === 'string', words: 'a checkpoint is kept' }
    const loaded = await trainer.load(folder, call)
    yield { holds: loaded.version === 1, words: 'and gone on from' }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
