import { z } from 'zod'
import { plainSampling } from '../../base/core/policy.ts'
import { leafWeightNames } from '../../base/math/credit.ts'
import { defaultLimits, defaultRewardSeconds } from '../../engine/rollout/attempt.ts'
import { channelSchema } from './notify-channel.ts'
import { budget, concurrency, count, type Setting, setting, share, text, texts } from './setting.ts'

/** Every setting of a run: the source of flags, help, config keys, their JSON schema and the docs. */
export const settings = {
  policy: setting(
    () => z.union([text(), texts().min(1)]).transform(value => [value].flat()),
    'The policy to sample from; requests are balanced over several',
    { argument: 'URI', isList: true },
  ),
  servedModel: setting(text, 'The name the server knows its model by', { argument: 'NAME' }),
  logprobs: setting(
    () => z.enum(['raw', 'processed']),
    'Whether log-probabilities of servers are raw or processed by the temperature (default: what each is found to give)',
    { argument: 'KIND' },
  ),
  model: setting(
    text,
    'Tokenizer and chat template: a model folder or a Hugging Face id (default: what the server says it serves)',
    { argument: 'DIR|ID' },
  ),
  offline: setting(() => z.boolean(), 'Never fetch tokenizer files from a hub', { default: false }),
  hub: setting(() => z.url(), 'Where tokenizer files of a Hugging Face id are fetched from', {
    argument: 'URL',
    default: 'https://huggingface.co',
  }),
  keyVariable: setting(text, 'The environment variable that holds the server key', {
    argument: 'NAME',
    default: 'ESPALIER_POLICY_KEY',
  }),
  record: setting(text, 'Write every sample to a cassette that replay:FILE reads', {
    argument: 'FILE',
  }),
  environment: setting(text, 'The environment: a name with options, or ./file.ts#export', {
    argument: 'NAME[:ITEM,…]',
  }),
  agent: setting(text, 'An agent in place of an environment', { argument: 'FILE#EXPORT' }),
  seats: setting(
    texts,
    'Who plays a seat of the environment without learning: a policy, past[:RUN], or ./file.ts#export',
    { argument: 'NAME=POLICY', flag: 'seat', isList: true, default: [] },
  ),
  tasks: setting(
    () => z.union([count(), text()]),
    'Tasks: a JSONL or Parquet file, a run of roll or eval, or how many to make from the seed',
    { argument: 'FILE|N' },
  ),
  heldOut: setting(
    () => z.union([count(), text()]),
    'Held-out tasks for evaluation: a file, or how many to make',
    { argument: 'FILE|N' },
  ),
  split: setting(text, "Which split of the environment's tasks", { argument: 'NAME' }),
  group: setting(count, 'Trees per task', { argument: 'N', default: 8 }),
  strategy: setting(() => z.enum(['chain', 'tree', 'step']), 'How attempts are rolled', {
    argument: 'chain|tree|step',
    default: 'chain',
  }),
  branch: setting(text, 'Where a tree branches', { argument: 'NAME[:ITEM,…]' }),
  leaves: setting(count, 'Most endings of one tree', { argument: 'N', default: 8 }),
  stepHistory: setting(() => z.int().min(0), 'Turns of the past that a step is shown', {
    argument: 'N',
    default: 3,
  }),
  weighting: setting(
    () => z.enum(leafWeightNames),
    'How the endings of a tree share their tokens',
    { argument: leafWeightNames.join('|'), default: 'uniform' },
  ),
  condense: setting(text, 'How long contexts are condensed', { argument: 'NAME[:ITEM,…]' }),
  reward: setting(texts, "Rewards to use instead of the environment's own", {
    argument: 'NAME|FILE#EXPORT',
    isList: true,
  }),
  judge: setting(text, 'The model that `--reward judge` asks, such as openai:URL', {
    argument: 'URI',
  }),
  rewardSeconds: setting(() => z.number().positive(), 'Seconds each part of a reward may take', {
    argument: 'SECONDS',
    default: defaultRewardSeconds,
  }),
  filters: setting(texts, 'Judges that drop trajectories, with a reason', {
    argument: 'NAME[:ITEM,…]',
    flag: 'filter',
    isList: true,
    default: [],
  }),
  guards: setting(texts, 'Watchers that stop a sample early', {
    argument: 'NAME[:ITEM,…]',
    flag: 'guard',
    isList: true,
    default: [],
  }),
  advantage: setting(text, 'How the members of a group are compared', {
    argument: 'NAME',
    default: 'grpo',
  }),
  maxTurns: setting(count, 'Most samples per trajectory', {
    argument: 'N',
    default: defaultLimits.turns,
  }),
  maxRolloutTokens: setting(count, 'Most sampled tokens per trajectory', {
    argument: 'N',
    default: defaultLimits.tokens,
  }),
  maxContext: setting(count, 'Most tokens of a prompt and its answer together', {
    argument: 'N',
    default: defaultLimits.context,
  }),
  maxNewTokens: setting(count, 'Most sampled tokens per turn', {
    argument: 'N',
    default: defaultLimits.newTokens,
  }),
  maxSeconds: setting(() => z.number().positive(), 'Most seconds per trajectory', {
    argument: 'SECONDS',
  }),
  onLength: setting(
    () => z.enum(['end', 'continue']),
    'After a turn that its token limit cut: end the attempt, or let the turn go on',
    { argument: 'end|continue', default: 'end' },
  ),
  onTime: setting(
    () => z.enum(['ungraded', 'graded']),
    'Whether an attempt that ran out of --max-seconds is scored; a slow server is not the policy’s fault',
    { argument: 'ungraded|graded', default: 'ungraded' },
  ),
  temperature: setting(() => z.number().min(0), 'Sampling temperature', {
    argument: 'T',
    default: plainSampling.temperature,
  }),
  topP: setting(share, 'Nucleus sampling', { argument: 'P', default: plainSampling.topP }),
  topK: setting(() => z.int().min(0), 'Sample from the K most probable tokens; 0: all', {
    argument: 'K',
    default: plainSampling.topK,
  }),
  minP: setting(
    share,
    'Sample from tokens with at least this share of the best one’s probability',
    { argument: 'P', default: plainSampling.minP },
  ),
  topLogprobs: setting(
    () => z.int().min(0),
    'Candidates per token to keep with their log-probabilities',
    { argument: 'N', default: 0 },
  ),
  stop: setting(texts, 'Texts that end a turn', { argument: 'TEXT', isList: true, default: [] }),
  history: setting(
    () => z.enum(['preserve', 'faithful']),
    'Whether a template may rewrite what was sampled',
    { argument: 'preserve|faithful', default: 'preserve' },
  ),
  templateVariables: setting(
    () => z.record(z.string(), z.unknown()),
    'Values for the chat template, as a JSON object',
    { argument: 'JSON', default: {} },
  ),
  toolFormat: setting(text, 'How the model writes calls (default: found from its template)', {
    argument: 'NAME',
  }),
  reasoningFormat: setting(
    text,
    'How the model writes reasoning (default: found from its template)',
    { argument: 'NAME' },
  ),
  markers: setting(
    () => z.enum(['text', 'tokens']),
    'Whether a marker spelled out in ordinary tokens counts, as for servers that parse text, or only the control token',
    { argument: 'text|tokens', default: 'text' },
  ),
  toolInstruction: setting(
    () => z.strictObject({ find: text(), replace: z.string() }),
    'Replaces the sentence in which the template offers tools, as JSON {"find","replace"}',
    { argument: 'JSON' },
  ),
  concurrency: setting(concurrency, 'Rollouts and requests at one time', {
    argument: 'N',
    default: 64,
  }),
  deadline: setting(() => z.number().positive(), 'Seconds one request to a server may take', {
    argument: 'SECONDS',
    default: 600,
  }),
  retries: setting(() => z.int().min(0), 'How often a request that failed is tried again', {
    argument: 'N',
    default: 5,
  }),
  budget: setting(
    budget,
    'Limits of the whole run, as JSON: tokens, seconds, trajectories, money (with a price per million)',
    { argument: 'JSON' },
  ),
  seed: setting(() => z.int().min(0), 'The seed that every random draw comes from', {
    argument: 'N',
    default: 0,
  }),
  adaptive: setting(
    () => z.boolean(),
    'Raise and lower the requests at one time by how the server answers, up to --concurrency',
    { default: false },
  ),
  keep: setting(
    count,
    'Stop when this many groups can be trained on; attempts that are cut go on when the run is resumed',
    { argument: 'GROUPS' },
  ),
  overSample: setting(
    () => z.number().min(1),
    'Groups begun for each one that --keep still wants',
    { argument: 'FACTOR', default: 1 },
  ),
  refill: setting(
    () => z.number().min(0),
    'Groups that may be rolled in place of those that filters emptied, per group wanted',
    { argument: 'FACTOR', default: 2 },
  ),
  sentinels: setting(() => z.boolean(), 'Warn about silent failures', { default: true }),
  metricsPort: setting(
    () => z.int().min(0).max(65_535),
    'Serve metrics for Prometheus on this port',
    { argument: 'PORT' },
  ),
  metrics: setting(
    () => z.string().regex(/^tensorboard:.+$/, 'is tensorboard:DIR'),
    'Write metrics as event files of TensorBoard: tensorboard:DIR',
    { argument: 'tensorboard:DIR' },
  ),
  traces: setting(() => z.url(), 'Send OpenTelemetry traces to this collector (OTLP over HTTP)', {
    argument: 'URL',
  }),
  notify: setting(
    () => z.array(channelSchema()),
    'Send failures, warnings and the end of the run to people: JSON {"kind":"slack","urlVariable":"NAME"} and others',
    { argument: 'JSON', isList: true, default: [] },
  ),
  unfinished: setting(
    () => z.enum(['continue', 'restart']),
    'What a resumed run does with attempts that were cut: go on from their last finished turn, or begin again',
    { argument: 'continue|restart', default: 'continue' },
  ),
  trainer: setting(text, 'What learns: embedded, tinker:URL or ./file.ts#export', {
    argument: 'NAME',
    default: 'embedded',
  }),
  steps: setting(count, 'Training steps', { argument: 'N', default: 60 }),
  tasksPerStep: setting(count, 'Tasks per training step', { argument: 'N', default: 32 }),
  sampleTasks: setting(
    text,
    'How tasks are drawn: uniform, or by their success so far: band, thompson, progress',
    { argument: 'NAME[:ITEM,…]', default: 'uniform' },
  ),
  learningRate: setting(() => z.number().min(0), 'Learning rate', {
    argument: 'RATE',
    default: 4e-4,
  }),
  loss: setting(text, 'The loss to learn with', { argument: 'NAME', default: 'ppo' }),
  epochs: setting(count, 'Passes over each batch', { argument: 'N', default: 1 }),
  updates: setting(count, 'Updates of the weights per pass', { argument: 'N', default: 1 }),
  entropyBonus: setting(() => z.number(), 'Coefficient of the entropy bonus', {
    argument: 'C',
    default: 0.01,
  }),
  klPenalty: setting(
    () => z.number().min(0),
    'Coefficient of the KL penalty to the reference, or to the starting weights',
    { argument: 'C', default: 0 },
  ),
  klIn: setting(
    () => z.enum(['loss', 'reward']),
    'Whether the KL penalty is in the loss, or taken off rewards (which needs --reference)',
    { argument: 'loss|reward', default: 'loss' },
  ),
  reference: setting(
    text,
    'The policy that --kl-penalty keeps training near; its log-probability of every sampled token is kept',
    { argument: 'URI' },
  ),
  teacher: setting(
    text,
    'The policy that --distill learns from; its log-probability of every sampled token is kept',
    { argument: 'URI' },
  ),
  distill: setting(
    text,
    'On-policy distillation: a token’s advantage is how much likelier the teacher finds it, alone or added to the reward’s',
    { argument: 'alone|added[:coefficient=C]' },
  ),
  overlong: setting(
    text,
    'A penalty on rewards that grows over the last tokens before a maximum: soft:maximum=N,buffer=N',
    { argument: 'NAME[:ITEM,…]' },
  ),
  proximal: setting(
    () => z.enum(['recorded', 'recompute']),
    'What ratios are taken against: log-probabilities as sampled, or computed again before learning',
    { argument: 'recorded|recompute', default: 'recorded' },
  ),
  importance: setting(
    texts,
    'Weights that correct for tokens sampled by other weights or another engine: token, sequence, mask, icepop, reject, staleness',
    { argument: 'NAME[:ITEM,…]', isList: true, default: [] },
  ),
  oracleBonus: setting(
    () => z.number().min(0),
    'Added to the advantage of successful tokens for each nat they gain under the task’s oracle prompt',
    { argument: 'C', default: 0 },
  ),
  maxStaleness: setting(
    () => z.int().min(0),
    'How many steps old training data may be; 0 rolls and learns in turn',
    { argument: 'STEPS', default: 0 },
  ),
  onUpdate: setting(
    () => z.enum(['abort', 'finish']),
    'Samples under way when weights change: aborted and continued under the new ones, or finished under the old',
    { argument: 'abort|finish', default: 'abort' },
  ),
  evaluateEvery: setting(count, 'Steps between held-out evaluations', { argument: 'N' }),
  evaluateStrategy: setting(
    () => z.enum(['chain', 'same']),
    'How held-out tasks are attempted: chains, or as training rolls (default: chains in place of trees)',
    { argument: 'chain|same' },
  ),
  checkpointEvery: setting(count, 'Steps between checkpoints', { argument: 'N', default: 20 }),
  trials: setting(count, 'Attempts per task in an evaluation', { argument: 'N', default: 1 }),
  successAt: setting(() => z.number(), 'An attempt with at least this reward is a success', {
    argument: 'REWARD',
    default: 1,
  }),
  k: setting(() => z.array(count()), 'The k of pass@k and pass^k', { argument: 'K', isList: true }),
  results: setting(text, 'Where an evaluation writes its results', { argument: 'FILE' }),
  sinks: setting(
    () => z.array(z.strictObject({ to: text(), out: text() })),
    'Exports to write while the run goes on, as JSON',
    { argument: 'JSON', default: [] },
  ),
  threads: setting(
    () => z.union([z.literal('auto'), z.int().min(1).max(256)]),
    'Threads that attempts are spread over; auto starts them when one is busy all the time',
    { argument: 'N|auto', default: 'auto' },
  ),
  cluster: setting(
    text,
    'Let the workers of a cluster make the attempts: postgres://USER@HOST/DATABASE, or local:N to start N here',
    { argument: 'ADDRESS' },
  ),
  out: setting(text, 'The run folder (default: runs/<next number>)', { argument: 'RUN' }),
} as const satisfies Record<string, Setting>

/** The name of a setting. */
export type SettingName = keyof typeof settings

/** Settings as they are after defaults, config, profile and flags. */
export type Settings = {
  readonly [Name in SettingName]: (typeof settings)[Name] extends { default: unknown }
    ? z.output<(typeof settings)[Name]['schema']>
    : z.output<(typeof settings)[Name]['schema']> | undefined
}

/** Settings as a config or flags give them. */
export type SettingsInput = {
  readonly [Name in SettingName]?: z.input<(typeof settings)[Name]['schema']> | undefined
}

/** The flag of a setting: `maxTurns` is `--max-turns`. */
export function flagOf(name: SettingName): string {
  const { flag } = settings[name] as Setting
  return flag ?? name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}

/** The flag of a setting as help shows it, with what its value is called; a switch can be turned either way. */
export function shownFlag(name: SettingName): string {
  const { argument } = settings[name] as Setting
  const flag = flagOf(name)
  return argument === undefined ? `--${flag}, --no-${flag}` : `--${flag} ${argument}`
}

/** Settings with every default filled in. */
export function withDefaults(input: SettingsInput): Settings {
  const filled = Object.entries(settings).map(([name, each]) => {
    const given = input[name as SettingName]
    return [name, given === undefined ? (each as Setting).default : given]
  })
  return Object.fromEntries(filled) as Settings
}

/** The default of every setting; defaults are defined nowhere else. */
export const defaults: Settings = withDefaults({})

/** How many tasks an environment makes by default. */
export const defaultTasks = 16

/** The fields that have a value, so that none overwrites a default. */
export function withoutUndefined<T extends object>(
  from: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(from).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}
