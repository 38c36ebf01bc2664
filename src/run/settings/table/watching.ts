import { z } from 'zod'
import { channelSchema } from '../notify-channel.ts'
import { setting, text } from '../setting.ts'
import { trackerPattern } from '../tracker-name.ts'

/** What watches a run, and what is kept of it. */
export const watching = {
  /** Warn about silent failures; needs a run folder. @default true */
  sentinels: setting(() => z.boolean(), 'Warn about silent failures', {
    default: true,
    usedIn: 'run',
  }),
  /** A port to serve metrics for Prometheus on; needs a run folder. @default none */
  metricsPort: setting(
    () => z.int().min(0).max(65_535),
    'Serve metrics for Prometheus on this port',
    { argument: 'PORT', usedIn: 'run' },
  ),
  /** Where curves are written: `tensorboard:DIR`. */
  metrics: setting(
    () => z.string().regex(/^tensorboard:.+$/, 'is tensorboard:DIR'),
    'Write metrics as event files of TensorBoard: tensorboard:DIR',
    { argument: 'tensorboard:DIR', usedIn: 'run' },
  ),
  /** Where curves are shown while the run goes: `mlflow:URI`, `wandb:ENTITY/PROJECT`, `tensorboard:DIR`. @default none */
  track: setting(
    () =>
      z.array(
        z
          .string()
          .regex(trackerPattern, 'is mlflow:URI, wandb[:[ENTITY/]PROJECT] or tensorboard:DIR'),
      ),
    'Show the curves live: mlflow:URI[?experiment=NAME], wandb[:[ENTITY/]PROJECT], tensorboard:DIR; settings and figures are sent, conversations never',
    { argument: 'mlflow:URI|wandb[:PROJECT]|tensorboard:DIR', isList: true, usedIn: 'run' },
  ),
  /** A collector to send OpenTelemetry traces to; needs a run folder. @default none */
  traces: setting(() => z.url(), 'Send OpenTelemetry traces to this collector (OTLP over HTTP)', {
    argument: 'URL',
    usedIn: 'one thread',
  }),
  /** Channels that people are told through; needs a run folder. @default none */
  notify: setting(
    () => z.array(channelSchema()),
    'Send failures, warnings and the end of the run to people: JSON {"kind":"webhook","urlVariable":"NAME"} or {"kind":"command","command":["PROGRAM"]}',
    { argument: 'JSON', isList: true, default: [], usedIn: 'run' },
  ),
  /** Exports written while the run goes on; needs a run folder. @default none */
  sinks: setting(
    () => z.array(z.strictObject({ to: text(), out: text() })),
    'Exports to write while the run goes on, as JSON',
    {
      argument: 'JSON',
      default: [],
      commands: ['roll', 'train', 'gateway', 'rollouts', 'fork'],
      usedIn: 'run',
    },
  ),
  /** A run folder to keep everything in. @default none */
  out: setting(text, 'The run folder (default: runs/<next number>)', {
    argument: 'RUN',
    usedIn: 'run',
  }),
} as const
