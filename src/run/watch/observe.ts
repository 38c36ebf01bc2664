import { basename, resolve } from 'node:path'
import type { PrefixCache } from '../../base/core/policy.ts'
import { packageVersion } from '../../base/core/process/package-version.ts'
import {
  keepSecret,
  keepSecretVariables,
  withoutLikelySecrets,
} from '../../base/core/process/secrets.ts'
import type { Instrument } from '../../engine/rollout/attempt.ts'
import { offered } from '../settings/offered.ts'
import { openNamed } from '../settings/open-named.ts'
import { defaults, type Settings } from '../settings/settings.ts'
import { readManifest, runPaths } from '../store/run-folder.ts'
import type { EarlyStop, Listen, RunEvent, Together, Warned, WorkerStatus } from './events.ts'
import { listenAll, tellTogether } from './events.ts'
import { type GroupsTally, makeRunTally } from './run-tally.ts'
import { makeSentinels } from './sentinels/open-sentinels.ts'
import type { SentinelContext } from './sentinels/sentinel.ts'
import { openEventsFile } from './telemetry/events-file.ts'

/** Everything that observes a run and reports on it. */
export interface Observers extends AsyncDisposable {
  readonly listen: Listen
  readonly instruments: readonly Instrument[]
  /** Notes for the report, besides its groups. */
  notes(): ObserverNotes
}

/** What observers noticed during a run. */
export interface ObserverNotes {
  readonly warnings: readonly Omit<Warned, 'kind'>[]
  /** What depended on the clock, and so may differ in a repetition. */
  readonly clock: readonly string[]
  readonly retries: number
  /** Seconds spent on rewards, which trees do not record. */
  readonly scoringSeconds: number
  /** The tally of all groups, if all were seen. */
  readonly tally?: GroupsTally
  /** Lengths of what was kept and what an early stop cut. */
  readonly earlyStop?: Omit<EarlyStop, 'kind'>
  /** All workers as last seen, if attempts were made elsewhere. */
  readonly workers?: readonly WorkerStatus[]
  readonly notices?: { readonly sent: number; readonly held: number; readonly failed: number }
  readonly spans?: { readonly sent: number; readonly lost: number }
  /** What the server counted of prompts and of its cache during the run, whoever asked it. */
  readonly prefixCache?: PrefixCache
}

/** The settings that observers read; missing ones have their default. */
export type ObserverSettings = Partial<
  Pick<Settings, 'metricsPort' | 'metrics' | 'track' | 'traces' | 'notify' | 'sentinels'>
>

/** What observers need of the run. */
export interface ObserverContext extends SentinelContext {
  readonly out: string
  readonly tell: (line: string) => void
}

/** Opens the observers that settings ask for; events in the run folder are always written. */
export async function openObservers(
  settings: ObserverSettings,
  context: ObserverContext,
): Promise<Observers> {
  const { out, tell } = context
  const run = basename(resolve(out))
  const closing: AsyncDisposable[] = []
  const listeners: Listen[] = []
  const instruments: Instrument[] = []
  const notes = makeNotes(out)
  let listener: Listen | undefined
  const all = (): Listen => {
    // Made once, because it is called with every sample.
    listener ??= listenAll(notes.listen, ...listeners)
    return listener
  }
  const tellAll: Listen = Object.assign((event: RunEvent) => all()(event), {
    together: (events: Together) => tellTogether(all(), events),
  })
  const add = ({ listen, instrument, closes }: Observer): void => {
    listeners.push(listen)
    if (instrument) instruments.push(instrument)
    if (closes) closing.push(closes)
  }
  const open = async (): Promise<void> => {
    const events = openEventsFile(runPaths(out).events)
    add({ listen: events.listen, closes: events })
    const { metricsPort, metrics, track, traces } = settings
    if (metricsPort !== undefined) add(await openServedMetrics(metricsPort, tell))
    const tracks = [...(metrics === undefined ? [] : [metrics]), ...(track ?? [])]
    for (const name of tracks) add(await openTracking(name, context))
    if (traces !== undefined) {
      const { counts, ...observer } = await openTracing(traces, run)
      add(observer)
      notes.spans = counts
    }
    const notifier = await makeNotices(settings, run, tell)
    if (notifier) {
      add({ listen: notifier.listen, closes: notifier })
      notes.notices = notifier.counts
    }
    if (settings.sentinels ?? defaults.sentinels) {
      const listen = makeSentinels(context, warning => {
        tell(`WARNING ${warning.sentinel}: ${warning.message}. Likely: ${warning.likely}.`)
        tellAll(warning)
      })
      add({ listen })
    }
  }
  const close = async (): Promise<void> => {
    for (const each of closing.toReversed()) await each[Symbol.asyncDispose]()
  }
  await open().catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { listen: tellAll, instruments, notes: notes.take, [Symbol.asyncDispose]: close }
}

/** One observer of a run; what most runs do not ask for is loaded when it is asked for. */
interface Observer {
  readonly listen: Listen
  readonly instrument?: Instrument
  readonly closes?: AsyncDisposable
}

async function openServedMetrics(port: number, tell: (line: string) => void): Promise<Observer> {
  const { makeMetrics: openMetrics } = await import('./telemetry/prometheus.ts')
  const serveMetrics = await offered().serveMetrics()
  const { watchSamples } = await import('./telemetry/watch-samples.ts')
  const metrics = openMetrics()
  const served = await openNamed(`--metrics-port ${port}`, () => serveMetrics(metrics, port))
  tell(`metrics at ${served.url}`)
  // Only metrics count single samples; watching each of them costs time.
  return { listen: metrics.listen, instrument: watchSamples(metrics.listen), closes: served }
}

async function openTracking(name: string, { out, tell }: ObserverContext): Promise<Observer> {
  const { openNamedTracker } = await import('./trackers/open-tracker.ts')
  const run = {
    name: basename(resolve(out)),
    folder: out,
    settings: async () => (await readManifest(out)).config,
  }
  const options = { tell, variables: process.env }
  const tracker = await openNamed(`--track ${name}`, () => openNamedTracker(name, run, options))
  return { listen: tracker.listen, closes: tracker }
}

async function openTracing(
  url: string,
  run: string,
): Promise<Observer & { readonly counts: ObserverNotes['spans'] }> {
  const { openExporter } = await import('./telemetry/otlp.ts')
  const { makeTraces: openTraces } = await import('./telemetry/traces.ts')
  const exporter = openExporter(exporterOf(url, run))
  const { listen, instrument } = openTraces(run, exporter)
  return { listen, instrument, closes: exporter, counts: exporter.counts }
}

/** Headers, which may include keys, come from OpenTelemetry's own environment variable. */
function exporterOf(url: string, run: string) {
  const headers = Object.fromEntries(
    (process.env.OTEL_EXPORTER_OTLP_HEADERS ?? '').split(',').flatMap(pair => {
      const at = pair.indexOf('=')
      return at > 0
        ? [[pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]]
        : []
    }),
  )
  const version = packageVersion()
  const resource = { 'service.name': 'espalier', 'service.version': version, 'espalier.run': run }
  for (const value of Object.values(headers)) keepSecret(value)
  return { url, headers, resource }
}

async function makeNotices(
  { notify = defaults.notify }: ObserverSettings,
  run: string,
  tell: (line: string) => void,
) {
  if (notify.length === 0) return undefined
  const { makeChannel: openChannel } = await import('./notify/channels.ts')
  const { makeNotifier } = await import('./notify/notifier.ts')
  const channels = await Promise.all(
    notify.map(each => openNamed(undefined, () => openChannel(each, process.env))),
  )
  for (const secret of channels.flatMap(channel => channel.secrets)) keepSecret(secret)
  keepSecretVariables(process.env)
  return makeNotifier({ run, channels, redact: withoutLikelySecrets, tell })
}

function makeNotes(run: string) {
  const tally = makeRunTally(run)
  const warnings: Omit<Warned, 'kind'>[] = []
  const clock = new Set<string>()
  let retries = 0
  let scoringSeconds = 0
  let earlyStop: ObserverNotes['earlyStop']
  const workers = new Map<string, WorkerStatus>()
  const listen = (event: RunEvent): void => {
    tally.listen(event)
    if (event.kind === 'warning') {
      const { kind: _kind, ...warning } = event
      warnings.push(warning)
    } else if (event.kind === 'retry') retries++
    else if (event.kind === 'score-end') scoringSeconds += event.seconds
    else if (event.kind === 'concurrency-change') clock.add('adaptive concurrency')
    else if (event.kind === 'budget-spent' && event.of === 'seconds') clock.add('a time budget')
    else if (event.kind === 'workers') {
      for (const worker of event.workers) workers.set(worker.id, worker)
    } else if (event.kind === 'early-stop') {
      const { kind: _kind, ...stop } = event
      clock.add('an early stop')
      earlyStop = stop
    }
  }
  const together = (events: Together): void => {
    if (events.kind === 'trees-end') scoringSeconds += events.scoringSeconds
  }
  const notes = {
    listen: Object.assign(listen, { together }),
    notices: undefined as ObserverNotes['notices'],
    spans: undefined as ObserverNotes['spans'],
    take: (): ObserverNotes => ({
      warnings,
      clock: [...clock],
      retries,
      scoringSeconds,
      ...(tally.whole() && { tally: tally.whole()! }),
      ...(earlyStop && { earlyStop }),
      ...(workers.size > 0 && { workers: [...workers.values()] }),
      ...(notes.notices && { notices: notes.notices }),
      ...(notes.spans && { spans: notes.spans }),
    }),
  }
  return notes
}
