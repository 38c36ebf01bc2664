import { agentLines } from './agent-lines.ts'
import { archives, journals } from './archives.ts'
import type { Attack } from './attack.ts'
import { clusterRows } from './cluster-rows.ts'
import { dialects } from './dialects.ts'
import { doors } from './doors.ts'
import { configs, runFolders, weights } from './foreign-files.ts'
import { foreignSettings } from './foreign-settings.ts'
import { images } from './images.ts'
import { modelOutputs } from './model-outputs.ts'
import { protobufAnswers } from './protobuf.ts'
import { patterns, schemas } from './schemas.ts'
import { eventStreams, serverAnswers } from './server-answers.ts'
import { services } from './services.ts'
import { templates } from './templates.ts'
import { foreignText, tokenizerFiles } from './tokenizers.ts'

/** All of them; their shares add up to a thousand. */
export const attacks: readonly Attack[] = [
  modelOutputs,
  serverAnswers,
  protobufAnswers,
  eventStreams,
  doors,
  services,
  dialects,
  templates,
  foreignText,
  tokenizerFiles,
  schemas,
  patterns,
  journals,
  archives,
  runFolders,
  weights,
  configs,
  clusterRows,
  images,
  agentLines,
  foreignSettings,
]
