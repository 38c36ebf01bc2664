import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Call } from '../../../base/core/call.ts'
import type { Group } from '../../../base/core/group.ts'
import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'
import type { Trainer } from '../../../base/core/trainer.ts'
import {
  createModel,
  publish,
  type TinkerModel,
  unload,
} from '../../../engine/policies/tinker/model.ts'
import { makePasses } from '../../../engine/policies/tinker/passes.ts'
import { fieldsOf, TinkerError } from '../../../engine/policies/tinker/request.ts'
import type { TinkerSession } from '../../../engine/policies/tinker/session.ts'
import { groupRows, type MemberRow } from '../../../run/rows/row-record.ts'
import { defaults } from '../../../run/settings/settings.ts'
import { toDatum } from '../../../run/sinks/formats/tinker.ts'
import { rowFactors } from '../row-factors.ts'
import { findDivision } from './division.ts'
import { lossFor, type ServerLoss, type TinkerLoss } from './losses.ts'
import type { TinkerTrainerOptions } from './options.ts'
import { ownPass } from './own-pass.ts'
import { combined, type Learner, type PassSums, passOver } from './pass.ts'
import { withProvenance } from './provenance.ts'

type Settings = ReturnType<typeof settingsOf>

/** The state of a trainer; loading a checkpoint replaces the model. */
interface State extends Learner {
  readonly session: TinkerSession
  readonly settings: Settings
  readonly loss: TinkerLoss
  model: TinkerModel
  /** The version of what was learned last; the session's is that of what is sampled from. */
  version: number
  /** Whether that is sampled from yet. */
  isOffered: boolean
}

const remembered = 'tinker.json'

/**
 * Trains through a Tinker server: forward and backward over every trajectory's full paths, an optimiser
 * step, and weights for the sampler, which the session's policy samples from afterwards. Tinker sums
 * over tokens, other servers divide; advantages are scaled so that the result is the wanted mean.
 * Samples come from the adapter from the start (it first equals the base model), as not every server
 * can sample the base model itself.
 */
export async function openTinkerTrainer(
  session: TinkerSession,
  options: TinkerTrainerOptions = {},
): Promise<Trainer> {
  const { kind } = session
  const settings = settingsOf(session, options)
  const loss = lossFor(kind, settings.loss)
  if (settings.gradientClip !== undefined && !kind.clipsGradients) {
    throw new Error(`${kind.name} does not clip gradients: leave gradient-clip out`)
  }
  if (settings.targets !== undefined && !kind.takesTargets) {
    throw new Error(`${kind.name} chooses itself which maps it changes: leave targets out`)
  }
  const call = { signal: AbortSignal.timeout(600_000) }
  const model = await createModel(session, settings, call)
  const { provenance } = session
  if (settings.provenance) provenance.keep()
  const passes = makePasses(session)
  const begun = { model, version: session.version, isOffered: false }
  const state: State = { ...begun, session, settings, loss, kind, passes, provenance }
  await offer(state, call)
  return {
    name: `tinker:${session.url}`,
    ...(kind.samplesApart
      ? { step: (groups, own) => learnFrom(state, groups, own), publish: own => offer(state, own) }
      : {
          async step(groups, own) {
            const step = await learnFrom(state, groups, own)
            await offer(state, own)
            return step
          },
        }),
    save: (folder, own) => saveTo(state, folder, own),
    load: (folder, own) => loadFrom(state, folder, own),
    async [Symbol.asyncDispose]() {
      await unload(session, state.model)
    },
  }
}

function settingsOf({ kind }: TinkerSession, options: TinkerTrainerOptions) {
  const { epochs, seed, weighting } = defaults
  const plain = { learningRate: 4e-4, epochs, seed, weighting, weightDecay: 0, epsilon: 1e-12 }
  return { rank: kind.rank, ...plain, ...options }
}

async function learnFrom(state: State, groups: readonly Group[], call: Call) {
  const { settings, loss } = state
  const form = loss.kind === 'own' ? 'once' : 'paths'
  const { weighting } = settings
  const all = groups.flatMap(group => groupRows(group, { weighting, form }))
  const counts = countRows(groups, all.filter(isWorthwhile))
  if (counts.trainedRows === 0) return { version: state.version, metrics: counts }
  const pass =
    loss.kind === 'own'
      ? () => ownPass(state, { members: all, loss }, call)
      : await serverPass(state, { all, loss }, call)
  let metrics: Readonly<Record<string, number>> = {}
  for (let epoch = 0; epoch < settings.epochs; epoch++) {
    const sums = await pass()
    metrics = { ...metrics, ...(epoch === 0 && metricsOf(sums)), loss: sums.loss }
    metrics = { ...metrics, ...namedServer(combined([sums.metrics, await optimise(state, call)])) }
  }
  state.version++
  state.isOffered = false
  return { version: state.version, metrics: { ...counts, ...metrics } }
}

/** A pass with a loss of the server, with advantages scaled so that its sum is our mean. */
async function serverPass(
  state: State,
  { all, loss }: { readonly all: readonly MemberRow[]; readonly loss: ServerLoss },
  call: Call,
): Promise<() => Promise<PassSums>> {
  const { settings, kind } = state
  const member = all.find(isWorthwhile)!
  const divides = settings.divides ?? (await findDivision(state, { member, loss }, call))
  const factors = rowFactors(all, { mean: loss.mean, divides })
  const data = all.flatMap((member, index) =>
    isWorthwhile(member)
      ? [
          withProvenance(
            toDatum(member, { factor: factors[index]!, weights: kind.takesWeights }),
            member,
            state.provenance,
          ),
        ]
      : [],
  )
  return () => passOver(state, { data, loss }, call)
}

/** Before the first update differences come from the two sides' arithmetic; after it, from learning. */
function metricsOf({ difference, furthest, tokens }: PassSums): Record<string, number> {
  if (tokens === 0) return {}
  return { meanDifference: difference / tokens, largestDifference: furthest }
}

/** The server's own metrics, prefixed so that they differ from ours. */
function namedServer(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [`server.${name}`, value]),
  )
}

async function optimise({ session, settings, model }: State, call: Call) {
  const { learningRate, epsilon, weightDecay, gradientClip } = settings
  const body = {
    type: 'optim_step',
    model_id: model.id,
    seq_id: model.next(),
    adam_params: {
      learning_rate: learningRate,
      beta1: 0.9,
      beta2: 0.95,
      eps: epsilon,
      weight_decay: weightDecay,
      ...(gradientClip !== undefined && { grad_clip_norm: gradientClip }),
    },
  }
  const { metrics } = await session.api.result('optim_step', body, call)
  const numbers = Object.entries((metrics ?? {}) as object)
  return Object.fromEntries(numbers.filter(([, value]) => typeof value === 'number'))
}

/** Makes the learned weights those that are sampled from, unless they are. */
async function offer(state: State, call: Call): Promise<void> {
  const { session, model, version } = state
  if (state.isOffered) return
  await session.sampleFrom(await publish(session, model, call), version, call)
  state.isOffered = true
}

async function saveTo(
  { session, model, version }: State,
  folder: string,
  call: Call,
): Promise<void> {
  const { api, baseModel, url } = session
  const name = `espalier-${version}`
  const body = { type: 'save_weights', model_id: model.id, path: name, seq_id: model.next() }
  const path = await api.result('save_weights', body, call).then(
    answer => answer.path,
    error => {
      // It was saved before, and only the answer was lost.
      if (error instanceof TinkerError && error.code === 409) {
        return `tinker://${model.id}/weights/${name}`
      }
      throw error
    },
  )
  await mkdir(folder, { recursive: true })
  const record = { path, version, baseModel, url }
  const text = jsonWithoutSecrets(record, 2)
  await writeFile(join(folder, remembered), `${text}\n`)
}

/** Servers load weights into fresh models only. */
async function loadFrom(
  state: State,
  folder: string,
  call: Call,
): Promise<{ readonly version: number }> {
  const { session, settings } = state
  const record = JSON.parse(await readFile(join(folder, remembered), 'utf8')) as {
    path: string
    version: number
  }
  const before = state.model
  state.model = await createModel(session, settings, call)
  const body = {
    type: 'load_weights',
    model_id: state.model.id,
    path: record.path,
    optimizer: true,
    seq_id: state.model.next(),
  }
  fieldsOf('load_weights', await session.api.result('load_weights', body, call))
  state.version = record.version
  state.isOffered = false
  await offer(state, call)
  await unload(session, before)
  return { version: record.version }
}

/** Whether a row has an advantage other than zero; others teach nothing. */
function isWorthwhile({ row }: MemberRow): boolean {
  return row.advantages.some((value, token) => row.mask[token] === 1 && value !== 0)
}

function countRows(groups: readonly Group[], rows: readonly MemberRow[]) {
  const count = (mask: Uint8Array): number => mask.reduce((sum, bit) => sum + bit, 0)
  return {
    groups: groups.length,
    trainedRows: rows.length,
    trainedTokens: rows.reduce((sum, { row }) => sum + count(row.mask), 0),
  }
}
