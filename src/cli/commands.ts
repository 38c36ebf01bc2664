import type { Command } from './command.ts'

/** Every command by its name, in the order of help; each is loaded when it is called. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand,
  init: async () => (await import('./commands/init.ts')).initCommand,
  roll: async () => (await import('./commands/roll.ts')).rollCommand,
  train: async () => (await import('./commands/train.ts')).trainCommand,
  eval: async () => (await import('./commands/eval.ts')).evalCommand,
  resume: async () => (await import('./commands/resume.ts')).resumeCommand,
  score: async () => (await import('./commands/score.ts')).scoreCommand,
  fork: async () => (await import('./commands/fork.ts')).forkCommand,
  compare: async () => (await import('./commands/compare.ts')).compareCommand,
  show: async () => (await import('./commands/show.ts')).showCommand,
  view: async () => (await import('./commands/view.ts')).viewCommand,
  export: async () => (await import('./commands/export.ts')).exportCommand,
  import: async () => (await import('./commands/import.ts')).importCommand,
  convert: async () => (await import('./commands/convert.ts')).convertCommand,
  dataset: async () => (await import('./commands/dataset.ts')).datasetCommand,
  rollouts: async () => (await import('./commands/rollouts.ts')).rolloutsCommand,
  worker: async () => (await import('./commands/worker.ts')).workerCommand,
  gateway: async () => (await import('./commands/gateway.ts')).gatewayCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  audit: async () => (await import('./commands/audit.ts')).auditCommand,
  teach: async () => (await import('./commands/teach.ts')).teachCommand,
  check: async () => (await import('./commands/check.ts')).checkCommand,
  tasks: async () => (await import('./commands/tasks/tasks.ts')).tasksCommand,
  environment: async () => (await import('./commands/environment/serve.ts')).environmentCommand,
  sandbox: async () => (await import('./commands/environment/sandbox.ts')).sandboxCommand,
  serve: async () => (await import('./commands/serve.ts')).serveCommand,
  'export-model': async () => (await import('./commands/export-model.ts')).exportModelCommand,
  tau: async () => (await import('./commands/tau.ts')).tauCommand,
}

/** The names of all commands, in the order of help. */
export const commandNames: readonly string[] = Object.keys(loaders)

/** The command of this name, if there is one. */
export async function loadCommand(name: string): Promise<Command | undefined> {
  return Object.hasOwn(loaders, name) ? await loaders[name]!() : undefined
}

/** All commands, for help. */
export async function loadCommands(): Promise<readonly Command[]> {
  return await Promise.all(Object.values(loaders).map(load => load()))
}
