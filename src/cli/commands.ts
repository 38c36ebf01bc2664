import type { Command } from './command.ts'
import { checkCommand } from './commands/check.ts'
import { compareCommand } from './commands/compare.ts'
import { convertCommand } from './commands/convert.ts'
import { datasetCommand } from './commands/dataset.ts'
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
import { showCommand } from './commands/show.ts'
import { tauCommand } from './commands/tau.ts'

/** Every command, in the order of help. */
export const commands: readonly Command[] = [
  initCommand,
  rollCommand,
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
  checkCommand,
  tauCommand,
]
