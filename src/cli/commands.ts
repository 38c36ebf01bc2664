import type { Command } from './command.ts'
import { auditCommand } from './commands/audit.ts'
import { checkCommand } from './commands/check.ts'
import { compareCommand } from './commands/compare.ts'
import { convertCommand } from './commands/convert.ts'
import { datasetCommand } from './commands/dataset.ts'
import { demoCommand } from './commands/demo.ts'
import { doctorCommand } from './commands/doctor.ts'
import { evalCommand } from './commands/eval.ts'
import { exportCommand } from './commands/export.ts'
import { forkCommand } from './commands/fork.ts'
import { importCommand } from './commands/import.ts'
import { initCommand } from './commands/init.ts'
import { resumeCommand } from './commands/resume.ts'
import { rollCommand } from './commands/roll.ts'
import { rolloutsCommand } from './commands/rollouts.ts'
import { scoreCommand } from './commands/score.ts'
import { serveCommand } from './commands/serve.ts'
import { showCommand } from './commands/show.ts'
import { tauCommand } from './commands/tau.ts'
import { teachCommand } from './commands/teach.ts'
import { trainCommand } from './commands/train.ts'

/** Every command, in the order of help. */
export const commands: readonly Command[] = [
  demoCommand,
  initCommand,
  rollCommand,
  trainCommand,
  evalCommand,
  resumeCommand,
  scoreCommand,
  forkCommand,
  compareCommand,
  showCommand,
  exportCommand,
  importCommand,
  convertCommand,
  datasetCommand,
  rolloutsCommand,
  doctorCommand,
  auditCommand,
  teachCommand,
  checkCommand,
  serveCommand,
  tauCommand,
]
