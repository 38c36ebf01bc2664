import { z } from 'zod'
import { joinEnvironments } from '../environment-names.ts'
import { count, setting, text, texts } from '../setting.ts'

/** Who attempts which tasks of which environment. */
export const rolled = {
  /** The policy: its URI as on the command line, several URIs that share the load, or an opened policy. */
  policy: setting(
    () => z.union([text(), texts().min(1)]).transform(value => [value].flat()),
    'The policy to sample from; requests are balanced over several',
    { argument: 'URI', isList: true, usedIn: 'threads' },
  ),
  environment: setting(
    () => z.union([text(), texts().min(1)]).transform(names => joinEnvironments([names].flat())),
    'The environment: a name with options, or ./file.ts#export; several share the tasks by their weight=N',
    {
      argument: 'NAME[:ITEM,…]',
      isList: true,
      usedIn: 'threads',
      functions: ['gateway'],
      inCode: 'the first argument',
    },
  ),
  agent: setting(
    text,
    'An agent in place of an environment: your own, or a program that is started',
    {
      argument: 'FILE#EXPORT|NAME',
      usedIn: 'run',
      inCode: 'the environment, which is the first argument',
    },
  ),
  sandbox: setting(
    text,
    'Where a harness, or the commands of a coding environment, run: local, docker, podman, remote:URL',
    {
      argument: 'KIND[:ITEM,…]',
      commands: ['roll', 'eval', 'train'],
      usedIn: 'run',
      inCode: 'an option of the environment, which is the first argument',
    },
  ),
  /** What the policy is told besides its task, in place of what the environment says; a file, or the prompt. @default the environment's own */
  prompt: setting(
    text,
    'What the policy is told in place of the environment’s own words, as improve-prompt writes it',
    {
      argument: 'FILE',
      commands: ['roll', 'eval', 'train', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** Who plays seats of the environment: NAME=POLICY, or by name. @default the policy plays all, and learns */
  seats: setting(
    texts,
    'Who plays a seat of the environment without learning: a policy, past[:RUN], or ./file.ts#export',
    {
      argument: 'NAME=POLICY',
      flag: 'seat',
      isList: true,
      default: [],
      commands: ['roll', 'eval', 'train', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** Tasks that attempts may name without sending their data: a file, a number to make, or a list. @default none */
  tasks: setting(
    () => z.union([count(), text()]),
    'Tasks: a JSONL or Parquet file, a run, how many to make from the seed, or harbor:DIR',
    {
      argument: 'FILE|N',
      commands: ['roll', 'eval', 'train', 'gateway', 'rollouts'],
      usedIn: 'run',
      functions: ['gateway'],
      inCode: 'the second argument',
    },
  ),
  /** Demonstrations put before each task as turns: so many, or `N..M` from N to M as success grows. @default 2 if there are demonstrations */
  shots: setting(
    () =>
      z.union([z.int().min(0), z.string().regex(/^\d+\.\.\d+$/, 'N or N..M, such as 2 or 2..0')]),
    'So many demonstrations as turns before each task; N..M goes from N to M as success grows',
    { argument: 'N|N..M', commands: ['roll', 'eval', 'train', 'rollouts'], usedIn: 'run' },
  ),
  /** What `shots` shows: a file of conversations, a run's solved ones, a function that shows each turn, or conversations. @default none */
  demonstrations: setting(text, 'What --shots shows', {
    argument: 'FILE|RUN|FILE#EXPORT',
    commands: ['roll', 'eval', 'train', 'rollouts'],
    usedIn: 'run',
  }),
  /** Which split of the environment's tasks. @default its own */
  split: setting(text, "Which split of the environment's tasks", {
    argument: 'NAME',
    commands: ['roll', 'eval', 'train', 'gateway', 'rollouts'],
    usedIn: 'threads',
  }),
  /** Trees per task. @default 8 */
  group: setting(count, 'Trees per task', {
    argument: 'N',
    default: 8,
    commands: ['roll', 'train', 'gateway', 'rollouts'],
    usedIn: 'run',
  }),
} as const
