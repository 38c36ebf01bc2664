import { z } from 'zod'
import { count, setting, text, texts } from '../setting.ts'

/** What learns, from what, and how. */
export const learning = {
  /** Tasks to evaluate on, or how many. @default a split made for it, else a fifth of the tasks */
  heldOut: setting(
    () => z.union([count(), text()]),
    'Held-out tasks for evaluation: a file, or how many to make',
    { argument: 'FILE|N', commands: ['train'], usedIn: 'run' },
  ),
  /** What learns: a name as on the command line, or an opened one, which is left open. @default 'embedded' */
  trainer: setting(text, 'What learns: embedded, tinker:URL or ./file.ts#export', {
    argument: 'NAME',
    default: 'embedded',
    commands: ['train'],
    usedIn: 'run',
  }),
  /** Training steps. @default 60 */
  steps: setting(count, 'Training steps', {
    argument: 'N',
    default: 60,
    commands: ['train'],
    usedIn: 'run',
  }),
  /** Tasks per training step. @default 32 */
  tasksPerStep: setting(count, 'Tasks per training step', {
    argument: 'N',
    default: 32,
    commands: ['train'],
    usedIn: 'run',
  }),
  /** How tasks are drawn: `uniform`, `band`, `thompson` or `progress`, with options. @default 'uniform' */
  sampleTasks: setting(
    text,
    'How tasks are drawn: uniform, or by their success so far: band, thompson, progress',
    { argument: 'NAME[:ITEM,…]', default: 'uniform', commands: ['train'], usedIn: 'run' },
  ),
  /** Constant, a schedule, or `auto`, which finds itself. @default 'auto' */
  learningRate: setting(
    () => z.union([z.literal('auto'), z.number().min(0)]),
    'Learning rate; auto raises it while steps hardly move the policy, and lowers it if they move it far',
    { argument: 'RATE|auto', default: 'auto', commands: ['train'], usedIn: 'run' },
  ),
  /** The adapter that a pretrained model inside learns in: `rank=N,alpha=A,targets=MAP+MAP`. @default a rank of 16 */
  lora: setting(
    text,
    'The adapter that a pretrained model inside learns in (default: rank=16, twice that as alpha, all maps)',
    { argument: 'rank=N[,alpha=A,targets=MAP+…]', commands: ['train'], usedIn: 'run' },
  ),
  /** Removes the information from the groups before they are learned from: success should not rise then. */
  control: setting(
    () => z.enum(['shuffled', 'noise']),
    'Learns from shuffled advantages, or from rewards drawn by chance: what still rises was not learned from rewards',
    { argument: 'shuffled|noise', commands: ['train'], usedIn: 'run' },
  ),
  /** The policy loss. @default 'ppo' */
  loss: setting(text, 'The loss to learn with', {
    argument: 'NAME',
    default: 'ppo',
    commands: ['train'],
    usedIn: 'run',
  }),
  /** Passes over each batch. @default 1 */
  epochs: setting(count, 'Passes over each batch', {
    argument: 'N',
    default: 1,
    commands: ['train'],
    usedIn: 'run',
  }),
  /** Updates per pass. @default 1 */
  updates: setting(count, 'Updates of the weights per pass', {
    argument: 'N',
    default: 1,
    commands: ['train'],
    usedIn: 'run',
  }),
  entropyBonus: setting(() => z.number(), 'Coefficient of the entropy bonus', {
    argument: 'C',
    default: 0,
    commands: ['train'],
    usedIn: 'run',
    inCode: 'entropy',
  }),
  /** Coefficient of the KL penalty. @default 0 */
  klPenalty: setting(
    () => z.number().min(0),
    'Coefficient of the KL penalty to the reference, or to the starting weights',
    { argument: 'C', default: 0, commands: ['roll', 'train', 'rollouts'], usedIn: 'threads' },
  ),
  /** Whether the KL penalty is in the loss or taken off rewards. @default 'loss' */
  klIn: setting(
    () => z.enum(['loss', 'reward']),
    'Whether the KL penalty is in the loss, or taken off rewards (which needs --reference)',
    {
      argument: 'loss|reward',
      default: 'loss',
      commands: ['roll', 'train', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** A policy whose log-probabilities of every sampled token are kept; its URI, or an opened one. @default none */
  reference: setting(
    text,
    'The policy that --kl-penalty keeps training near; its log-probability of every sampled token is kept',
    { argument: 'URI', commands: ['roll', 'train', 'rollouts'], usedIn: 'threads' },
  ),
  /** A policy to learn from, kept likewise. @default none */
  teacher: setting(
    text,
    'The policy that --distill learns from; its log-probability of every sampled token is kept',
    { argument: 'URI', commands: ['roll', 'train', 'rollouts'], usedIn: 'threads' },
  ),
  /** On-policy distillation: `alone` or `added`, with a coefficient. @default none */
  distill: setting(
    text,
    'On-policy distillation: a token’s advantage is how much likelier the teacher finds it, alone or added to the reward’s',
    {
      argument: 'alone|added[:coefficient=C]',
      commands: ['roll', 'train', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** Where ratios start from; `recompute` lets the policy score its finished tokens and keeps that. @default 'recorded' */
  proximal: setting(
    () => z.enum(['recorded', 'recompute']),
    'What ratios are taken against: log-probabilities as sampled, or computed again before learning',
    {
      argument: 'recorded|recompute',
      default: 'recorded',
      commands: ['roll', 'train', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** Importance weights, which correct for tokens sampled from other weights than those that learn; exports carry them. @default none */
  importance: setting(
    texts,
    'Weights that correct for tokens sampled by other weights or another engine: token, sequence, mask, icepop, reject, staleness',
    {
      argument: 'NAME[:ITEM,…]',
      isList: true,
      default: [],
      commands: ['roll', 'train', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** How much a token's advantage rises per nat that the task's oracle prompt adds to its log-probability. @default 0 */
  oracleBonus: setting(
    () => z.number().min(0),
    'Added to the advantage of successful tokens for each nat they gain under the task’s oracle prompt',
    { argument: 'C', default: 0, commands: ['train'], usedIn: 'run' },
  ),
  /** Whether it learns from agents elsewhere, who come to a gateway, instead of rolling tasks itself. */
  gateway: setting(
    () => z.boolean(),
    'Learn from agents that come to a gateway, instead of rolling tasks: they open attempts, and close them with rewards',
    { commands: ['train'], usedIn: 'run', functions: [], inCode: '`espalier gateway` in code' },
  ),
  /** A stored run whose groups are learned from, instead of rolling tasks. */
  from: setting(
    text,
    'Learn from the groups of a stored run, off-policy, instead of rolling tasks; --environment with --tasks measures what comes of it',
    { argument: 'RUN', commands: ['train'], usedIn: 'run' },
  ),
  /** How many steps old training data may be; 0 rolls and learns in turn. */
  maxStaleness: setting(
    () => z.int().min(0),
    'How many steps old training data may be; 0 rolls and learns in turn',
    { argument: 'STEPS', default: 0, commands: ['train'], usedIn: 'run' },
  ),
  /** Most steps that rolling may be ahead of learning, within `maxStaleness`. @default maxStaleness */
  lookAhead: setting(
    () => z.int().min(1),
    'Most steps that rolling may be ahead of learning; by measured times it is less (default: --max-staleness)',
    { argument: 'STEPS', commands: ['train'], usedIn: 'run' },
  ),
  /** What happens to samples under way when the weights change, if rolling runs ahead. @default 'abort' */
  onUpdate: setting(
    () => z.enum(['abort', 'finish']),
    'Samples under way when weights change: aborted and continued under the new ones, or finished under the old',
    { argument: 'abort|finish', default: 'abort', commands: ['train'], usedIn: 'run' },
  ),
  /** Steps in a row that leave the weights as they are, after which training ends; 0: it never does. @default 10 */
  patience: setting(
    () => z.int().min(0),
    'Steps in a row without anything to learn from, after which training ends; 0: it goes on',
    { argument: 'STEPS', default: 10, commands: ['train'], usedIn: 'run' },
  ),
  /** Steps between evaluations; before the first step and after the last there is always one. @default ten times in a run, within a fifth of the attempts */
  evaluateEvery: setting(
    count,
    'Steps between held-out evaluations (default: ten times in a run, within a fifth of the attempts)',
    {
      argument: 'N',
      commands: ['train'],
      usedIn: 'run',
    },
  ),
  /** Measures held-out tasks while training goes on, with a quarter of its attempts. @default false */
  evaluateBeside: setting(
    () => z.boolean(),
    'Measure held-out tasks while training goes on, within a quarter of --concurrency',
    { default: false, commands: ['train'], usedIn: 'run' },
  ),
  /** Whether held-out tasks are attempted as chains or as training rolls. @default chains in place of trees */
  evaluateStrategy: setting(
    () => z.enum(['chain', 'same']),
    'How held-out tasks are attempted: chains, or as training rolls (default: chains in place of trees)',
    { argument: 'chain|same', commands: ['train'], usedIn: 'run' },
  ),
  /** The temperature of held-out attempts. @default that of training attempts */
  evaluateTemperature: setting(
    () => z.number().min(0),
    'The temperature of held-out attempts (default: that of training attempts)',
    { argument: 'T', commands: ['train'], usedIn: 'run' },
  ),
  /** Whether each turn is learned behind a prompt of its own, which it was not sampled from. @default false */
  singleTurn: setting(
    () => z.boolean(),
    'Learn each turn behind the opening and its last --step-history turns, as it was not sampled; --importance corrects',
    { default: false, commands: ['train'], usedIn: 'run' },
  ),
  /** Steps between checkpoints. @default 20 */
  checkpointEvery: setting(count, 'Steps between checkpoints', {
    argument: 'N',
    default: 20,
    commands: ['train'],
    usedIn: 'run',
  }),
} as const
