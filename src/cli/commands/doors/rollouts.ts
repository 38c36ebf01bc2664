import { once } from 'node:events'
import { join } from 'node:path'
import type { Task } from '../../../base/core/environment.ts'
import type { GroupId } from '../../../base/core/ids.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { makeAllowedPolicies } from '../../../doors/service/allowed-policies.ts'
import { Rollouts } from '../../../doors/service/rollouts.ts'
import type { WeighFor } from '../../../doors/service/rollouts-answer.ts'
import { openRolloutsRecord } from '../../../doors/service/rollouts-record.ts'
import { serveRollouts } from '../../../doors/service/rollouts-server.ts'
import { Worlds } from '../../../doors/service/rollouts-worlds.ts'
import { refuseBatch } from '../../../engine/weigh/estimate.ts'
import { refuseChangingShots } from '../../../run/demonstrations/shots.ts'
import { makeLiveWeighing, type Weighing } from '../../../run/exchange/weighing.ts'
import { openRollParts } from '../../../run/run/open-parts.ts'
import { openRun } from '../../../run/run/open-run-folder.ts'
import type { RollParts } from '../../../run/run/roll-groups.ts'
import { rollOptionsOf } from '../../../run/run/roll-options.ts'
import { resolveSettings } from '../../../run/settings/config.ts'
import { needed, openNamed } from '../../../run/settings/open-named.ts'
import { openPolicy } from '../../../run/settings/open-policy.ts'
import { type Settings, settingsOf } from '../../../run/settings/settings.ts'
import type { Format } from '../../../run/sinks/format.ts'
import { DiskWatch } from '../../../run/store/disk-watch.ts'
import { isRun, readManifest } from '../../../run/store/run-folder.ts'
import { openRunReader } from '../../../run/store/store.ts'
import type { TaskSource } from '../../../run/tasks/tasks.ts'
import { tasksById } from '../../../run/tasks/tasks-by-id.ts'
import type { Command, Invocation } from '../../command.ts'
import { counted, doorFlags, readDoor, tryPort } from '../../listening.ts'
import { elsewhereOf } from '../../rolling.ts'

/** Serves rollouts to trainers in other languages. */
export const rolloutsCommand: Command = {
  name: 'rollouts',
  usage: '--policy URI --environment NAME [--port N]',
  about:
    'Trainers submit prompts or task ids, with a policy endpoint and its version if they like, and take\n' +
    'finished groups as rows in the format they name, by long polling or as server-sent events. New\n' +
    'weights can be announced, samples paused and resumed, by each of several trainers for itself. GET\n' +
    '/openapi.json describes all of it; integrations/python has clients. With --out every group is also\n' +
    'kept in a run folder.',
  examples: [
    'espalier rollouts --policy sglang:http://localhost:30000 --environment calculator --port 8900',
    'ESPALIER_TOKEN=… espalier rollouts --policy vllm:http://gpu:8000 --environment ./shop.ts#shop --host 0.0.0.0',
  ],
  settings: settingsOf('rollouts'),
  readsConfig: true,
  own: {
    port: { help: 'The port; 0 takes any free one (default: 8900)', argument: 'N' },
    ...doorFlags,
    'allow-policy': {
      help: 'An endpoint besides --policy that clients may name; may be given several times',
      argument: 'URI',
      isList: true,
    },
    queue: { help: 'Groups that may wait to be rolled (default: 4096)', argument: 'N' },
    results: { help: 'Finished groups that may wait to be taken (default: 256)', argument: 'N' },
  },
  positionalCount: [0, 0],
  run: runRollouts,
}

async function runRollouts(invocation: Invocation): Promise<number> {
  const { own, terminal, signal } = invocation
  const { values } = await resolveSettings(invocation)
  const { port = 8900 } = counted('port', own.port)
  const door = readDoor(invocation)
  const { host } = door
  await openNamed(`--port ${port}`, () => tryPort(port, host))
  const { tell } = terminal
  const { out } = values
  const away = elsewhereOf(values, { tell, ...(out !== undefined && { out }) })
  const options = { ...rollOptionsOf(values), tell, signal, ...away }
  const environment = needed(values, 'environment')
  refuseChangingShots(values.shots)
  await using opened = await openRollParts(environment, values.tasks, options)
  refuseBatch(opened.parts.estimate, 'the service')
  await using kept =
    values.out === undefined
      ? undefined
      : await keepIn(values.out, { parts: opened.parts, values, tell })
  const parts = { ...opened.parts, ...(kept && { writer: kept.parts.writer! }) }
  await serveUntilStopped(parts, { values, invocation, door, port, ...(kept && { kept }) })
  await kept?.finish()
  return 0
}

interface Serving {
  readonly values: Settings
  readonly invocation: Invocation
  readonly door: ReturnType<typeof readDoor>
  readonly port: number
  readonly kept?: Awaited<ReturnType<typeof keepIn>>
}

/** Serves until it is stopped, and waits until everything that was being rolled has stopped too. */
async function serveUntilStopped(
  parts: RollParts,
  { values, invocation, door, port, kept }: Serving,
): Promise<void> {
  const { own, lists, terminal, json, signal } = invocation
  const { tell } = terminal
  const checkPolicy = makeAllowedPolicies([
    ...(values.policy ?? []),
    ...(lists['allow-policy'] ?? []),
  ])
  await using rollouts = new Rollouts({
    parts,
    tell,
    openPolicy: async uri => {
      checkPolicy(uri)
      return await openServed(uri, values)
    },
    findTask: taskFinder(parts, values.tasks),
    weigh: makeWeighFor(values),
    ...(kept && { record: kept.record, disk: kept.disk, findGroup: kept.findGroup }),
    ...counted('queue', own.queue),
    ...counted('results', own.results),
  })
  await rollouts.restore()
  await using worlds = new Worlds({
    environment: parts.environment,
    reward: parts.reward ?? parts.environment.reward,
    rewardSeconds: parts.rewardSeconds,
  })
  await using server = await openNamed(`--host ${door.host}`, () =>
    serveRollouts({ rollouts, worlds }, { port, ...door }),
  )
  if (json) terminal.print(JSON.stringify({ url: server.url, policy: parts.policy.name }))
  else terminal.print(`rolling ${parts.environment.name} for trainers at ${server.url}`)
  if (!signal.aborted) await once(signal, 'abort')
}

/** Weighs groups for each format that clients ask for, as a run's own exports do. */
function makeWeighFor(values: Settings): WeighFor {
  const open = new Map<Format, Weighing>()
  return (group, format) => {
    const weighing = open.get(format) ?? makeLiveWeighing({ ...values }, { format })
    open.set(format, weighing)
    return weighing.weigh(group)
  }
}

interface Keeping {
  readonly parts: RollParts
  readonly values: Settings
  readonly tell: (line: string) => void
}

async function keepIn(out: string, { parts, values, tell }: Keeping) {
  const resumes = isRun(out)
  if (resumes) await refuseOthers(out)
  const disk = new DiskWatch({ tell })
  const record = { out, kind: 'rollouts', config: values, unfinished: 'restart', disk } as const
  const run = await openRun(parts, { ...record, resumes })
  const reader = resumes ? await openRunReader(out) : undefined
  return {
    parts: run.parts,
    disk,
    record: await openRolloutsRecord(join(out, 'submissions.jsonl')),
    findGroup: async (id: GroupId) => (await reader?.group(id))?.group,
    finish: () => run.finish(),
    async [Symbol.asyncDispose]() {
      await reader?.[Symbol.asyncDispose]()
      await run[Symbol.asyncDispose]()
    },
  }
}

/** A service goes on with the run of a service; groups of another run would be mixed with its own. */
async function refuseOthers(out: string): Promise<void> {
  const { kind } = await readManifest(out)
  if (kind === 'rollouts') return
  throw new SettingError(`--out ${out}: this is a run of espalier ${kind}; choose another folder`)
}

async function openServed(uri: string, values: Settings) {
  const key = process.env[values.keyVariable]
  return await openPolicy(uri, {
    ...(key !== undefined && { key }),
    deadlineSeconds: values.deadline,
    retries: values.retries === 0 ? false : { attempts: values.retries + 1 },
    ...(values.model !== undefined && { model: values.model }),
  })
}

/** Finds tasks of the service by id; they are read when the first is asked for. */
function taskFinder({ environment, seed = 0, split }: RollParts, source: TaskSource | undefined) {
  let known: Promise<ReadonlyMap<string, Task>> | undefined
  return async (id: string): Promise<Task | undefined> => {
    known ??= tasksById(environment, source, { seed, ...(split !== undefined && { split }) })
    return (await known).get(id)
  }
}
