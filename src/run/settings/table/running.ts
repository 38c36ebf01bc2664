import { z } from 'zod'
import { budget, concurrency, count, setting, text } from '../setting.ts'

/** How much is done at one time, where, and for how long. */
export const running = {
  /** Rollouts and requests at one time: one number, or lane by lane. @default 64 */
  concurrency: setting(concurrency, 'Rollouts and requests at one time', {
    argument: 'N',
    default: 64,
    usedIn: 'run',
  }),
  /** Seconds one request to a server may take. @default 600 */
  deadline: setting(() => z.number().positive(), 'Seconds one request to a server may take', {
    argument: 'SECONDS',
    default: 600,
    usedIn: 'threads',
  }),
  /** How often a request that failed is tried again. @default 5 */
  retries: setting(() => z.int().min(0), 'How often a request that failed is tried again', {
    argument: 'N',
    default: 5,
    usedIn: 'threads',
  }),
  /** Seconds that a run waits for a server that is away before it stops, to be resumed. @default 1800 */
  outage: setting(
    () => z.number().positive(),
    'Seconds to wait for a server that is away before the run stops, to be resumed',
    { argument: 'SECONDS', default: 1800, usedIn: 'threads' },
  ),
  /** What the whole run may cost. @default no limit */
  budget: setting(
    budget,
    'Limits of the whole run, as JSON: tokens, seconds, trajectories, money (with a price per million)',
    { argument: 'JSON', commands: ['roll', 'eval', 'train', 'fork'], usedIn: 'run' },
  ),
  /** Adjusts the number of concurrent requests to the server's signals. @default false */
  adaptive: setting(
    () => z.boolean(),
    'Raise and lower the requests at one time by how the server answers and how full its cache is, up to --concurrency',
    {
      default: false,
      commands: ['roll', 'eval', 'train', 'rollouts', 'fork'],
      usedIn: 'one thread',
    },
  ),
  /** Stop early when so many groups have something to train on. @default every task's */
  keep: setting(
    count,
    'Stop when this many groups can be trained on; attempts that are cut go on when the run is resumed',
    { argument: 'GROUPS', commands: ['roll', 'fork'], usedIn: 'run' },
  ),
  /** Groups begun for each one that `keep` still wants. @default 1 */
  overSample: setting(
    () => z.number().min(1),
    'Groups begun for each one that --keep still wants',
    { argument: 'FACTOR', default: 1, commands: ['roll', 'fork'], usedIn: 'run' },
  ),
  /** Groups that may be rolled in place of those that filters emptied, per group wanted. @default 2 */
  refill: setting(
    () => z.number().min(0),
    'Groups that may be rolled in place of those that filters emptied, per group wanted',
    { argument: 'FACTOR', default: 2, commands: ['roll', 'train', 'fork'], usedIn: 'run' },
  ),
  /** What a resumed run does with attempts that were cut. @default 'continue' */
  unfinished: setting(
    () => z.enum(['continue', 'restart']),
    'What a resumed run does with attempts that were cut: go on from their last finished turn, or begin again',
    {
      argument: 'continue|restart',
      default: 'continue',
      commands: ['roll', 'eval', 'fork'],
      usedIn: 'run',
    },
  ),
  /** Threads that share the attempts; all parts must be given by name. @default 'auto': started when this thread is always busy */
  threads: setting(
    () => z.union([z.literal('auto'), z.int().min(1).max(256)]),
    'Threads that attempts are spread over; auto starts them when one is busy all the time',
    {
      argument: 'N|auto',
      default: 'auto',
      commands: ['roll', 'eval', 'train', 'rollouts', 'fork'],
      usedIn: 'run',
    },
  ),
  cluster: setting(
    text,
    'Let the workers of a cluster make the attempts: postgres://USER@HOST/DATABASE, or local:N to start N here',
    {
      argument: 'ADDRESS',
      commands: ['roll', 'eval', 'train', 'rollouts', 'fork'],
      usedIn: 'run',
      inCode: 'elsewhere: openCluster(…)',
    },
  ),
  segments: setting(
    text,
    'Where workers of a cluster write large trees, so that only their places pass through the database: a folder that all machines share, or s3://BUCKET/PREFIX',
    {
      argument: 'DIR|s3://BUCKET/PREFIX',
      commands: ['roll', 'eval', 'train', 'rollouts', 'fork'],
      usedIn: 'run',
      inCode: 'elsewhere: openCluster(…)',
    },
  ),
} as const
