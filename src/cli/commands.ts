import type { Command } from './command.ts'

/** A command in the list of commands. */
interface ListedCommand {
  /** One line. */
  readonly summary: string
  /** Whether it stands on the first screen of help. */
  readonly isCommon?: boolean
  /** Loads the command itself, when it is called. */
  load(): Promise<Command>
}

/** Every command by its name, in the order of help. */
const commands: Readonly<Record<string, ListedCommand>> = {
  demo: {
    summary: 'Watch the policy inside act at a service desk, learn from it, and get better',
    isCommon: true,
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  init: {
    summary: 'Write a small project that runs at once',
    isCommon: true,
    load: async () => (await import('./commands/init.ts')).initCommand,
  },
  roll: {
    summary: 'Roll groups of attempts into a run folder',
    isCommon: true,
    load: async () => (await import('./commands/roll.ts')).rollCommand,
  },
  train: {
    summary: 'Roll and learn in turn',
    isCommon: true,
    load: async () => (await import('./commands/train.ts')).trainCommand,
  },
  eval: {
    summary: 'Measure a policy: success, pass@k and pass^k with intervals',
    isCommon: true,
    load: async () => (await import('./commands/eval.ts')).evalCommand,
  },
  survey: {
    summary:
      'Can this policy learn this task here? Success, contrast, cost and advice, before training',
    load: async () => (await import('./commands/survey.ts')).surveyCommand,
  },
  experiment: {
    summary:
      'Answer a question about training: arms × seeds at equal cost, compared with intervals',
    load: async () => (await import('./commands/experiment.ts')).experimentCommand,
  },
  'improve-prompt': {
    summary: 'Rewrite what a policy is told until it does better, before weights are trained',
    load: async () => (await import('./commands/improve-prompt.ts')).improvePromptCommand,
  },
  resume: {
    summary: 'Go on with an interrupted run',
    load: async () => (await import('./commands/resume.ts')).resumeCommand,
  },
  score: {
    summary: 'Score and filter stored trajectories again',
    load: async () => (await import('./commands/score.ts')).scoreCommand,
  },
  fork: {
    summary: 'Continue a stored trajectory from a turn or a token',
    load: async () => (await import('./commands/fork.ts')).forkCommand,
  },
  compare: {
    summary: 'Compare runs task by task: differences with intervals, tasks gained and lost',
    load: async () => (await import('./commands/compare.ts')).compareCommand,
  },
  show: {
    summary: 'Read a run, a group or a trajectory',
    isCommon: true,
    load: async () => (await import('./commands/show.ts')).showCommand,
  },
  view: {
    summary: 'Look at runs in a browser, live or finished, or write them as one HTML file',
    load: async () => (await import('./commands/doors/view.ts')).viewCommand,
  },
  export: {
    summary: 'Write a run as training rows',
    isCommon: true,
    load: async () => (await import('./commands/exchange/export.ts')).exportCommand,
  },
  import: {
    summary: 'Make a run of a file in the format of a trainer',
    load: async () => (await import('./commands/exchange/import.ts')).importCommand,
  },
  convert: {
    summary: 'Make single-turn samples of multi-turn trajectories, marked off-policy',
    load: async () => (await import('./commands/exchange/convert.ts')).convertCommand,
  },
  pack: {
    summary: 'Join the segments of a cluster’s run into a single journal',
    load: async () => (await import('./commands/exchange/pack.ts')).packCommand,
  },
  dataset: {
    summary: 'Build supervised sets over condensed inputs, and measure what condensing loses',
    load: async () => (await import('./commands/exchange/dataset.ts')).datasetCommand,
  },
  rollouts: {
    summary: 'Roll for trainers in other languages, over HTTP',
    load: async () => (await import('./commands/doors/rollouts.ts')).rolloutsCommand,
  },
  worker: {
    summary: 'Make attempts for the runs of a cluster',
    load: async () => (await import('./commands/doors/worker.ts')).workerCommand,
  },
  database: {
    summary: 'Keep a PostgreSQL server for a cluster, if nobody has one',
    load: async () => (await import('./commands/doors/database.ts')).databaseCommand,
  },
  gateway: {
    summary: 'Record and reward agents in any language, by their base URL',
    load: async () => (await import('./commands/doors/gateway.ts')).gatewayCommand,
  },
  doctor: {
    summary: 'Examine a model folder: is every token exact, and what does its template rewrite?',
    isCommon: true,
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
  audit: {
    summary: 'Recompute every log-probability and compare',
    load: async () => (await import('./commands/audit.ts')).auditCommand,
  },
  teach: {
    summary: 'Make an embedded model from demonstrations',
    load: async () => (await import('./commands/teach.ts')).teachCommand,
  },
  check: {
    summary: 'Check an environment: disposal, determinism, forks, mistakes, shortcuts',
    load: async () => (await import('./commands/check.ts')).checkCommand,
  },
  tasks: {
    summary: 'Make, dedupe, split and measure sets of tasks',
    load: async () => (await import('./commands/tasks/tasks.ts')).tasksCommand,
  },
  environment: {
    summary: 'Serve an environment as an OpenEnv and MCP server',
    load: async () => (await import('./commands/environment/serve.ts')).environmentCommand,
  },
  sandbox: {
    summary: 'Serve workspaces of this machine to attempts that are rolled elsewhere',
    load: async () => (await import('./commands/environment/sandbox.ts')).sandboxCommand,
  },
  serve: {
    summary: 'Serve an embedded model over HTTP',
    load: async () => (await import('./commands/doors/serve.ts')).serveCommand,
  },
  'export-model': {
    summary: 'Write an embedded model for llama.cpp, Ollama, transformers and transformers.js',
    load: async () => (await import('./commands/exchange/export-model.ts')).exportModelCommand,
  },
  tau: {
    summary: 'Pack a tau-bench checkout into a folder that loads fast',
    load: async () => (await import('./commands/tau.ts')).tauCommand,
  },
}

/** The names of all commands, in the order of help. */
export const commandNames: readonly string[] = Object.keys(commands)

/** The command of this name, if there is one. */
export async function loadCommand(name: string): Promise<Command | undefined> {
  return Object.hasOwn(commands, name) ? await commands[name]!.load() : undefined
}

/** The first screen: what the program is, and the commands people begin with. */
export function programHelp(isAll: boolean): string {
  const shown = Object.entries(commands).filter(([, { isCommon }]) => isAll || isCommon)
  const width = Math.max(...shown.map(([name]) => name.length))
  const lines = shown.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return [
    'espalier: rollouts for training language-model agents, exact to the token.',
    '',
    'Usage: espalier COMMAND [flags]',
    '',
    ...lines,
    '',
    isAll
      ? 'espalier COMMAND --help shows a command. Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted.'
      : 'espalier --help all shows every command, --help config every setting,\nespalier COMMAND --help one of them.',
  ].join('\n')
}
