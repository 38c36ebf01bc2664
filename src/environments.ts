// espalier/environments: worlds, their tools, and what shortens their contexts.

import './offers.ts'

export type {
  Condensation,
  CondenseCall,
  Condensed,
  Condenser,
  Condensing,
} from './base/core/condenser.ts'
export type { CallRecord, StandardSchema } from './base/core/tool.ts'
export { type ChunkOptions, chunkText } from './engine/condensers/chunk.ts'
export { keepLastTurns } from './engine/condensers/keep-last-turns.ts'
export { keywordCondenser } from './engine/condensers/keyword.ts'
export { modelCondenser } from './engine/condensers/model.ts'
export { measureLoss } from './engine/condensers/probe.ts'
export { openCondenser } from './engine/condensers/registry.ts'
export { selfCondenser } from './engine/condensers/self.ts'
export { trimToolOutput } from './engine/condensers/trim-tool-output.ts'
export { calculator } from './engine/environments/built-in/calculator.ts'
export { keyValue } from './engine/environments/built-in/key-value.ts'
export { type PassageTask, passages } from './engine/environments/built-in/passages.ts'
export { singleTurn } from './engine/environments/built-in/single-turn.ts'
export { toolLoop } from './engine/environments/built-in/tool-loop.ts'
export { desk } from './engine/environments/desk/desk.ts'
export { withFork } from './engine/environments/fork.ts'
export { openPool } from './engine/environments/pool.ts'
export { openMcpTools } from './engine/environments/tools/mcp.ts'
export { type HarborTask, harbor, solveHarbor } from './worlds/harbor/harbor.ts'
export { type InterpreterOptions, interpreter } from './worlds/interpreter/interpreter.ts'
export { type OpenEnvOptions, openOpenEnv } from './worlds/openenv/openenv.ts'
export { openPython, type PythonOptions } from './worlds/python-bridge/python.ts'
export { type RepairTask, repair } from './worlds/repair/repair.ts'
export { type MiniwobOptions, type MiniwobTask, miniwob } from './worlds/web/miniwob.ts'
export type { Serve } from './worlds/web/network.ts'
export type { Downloaded, Screenshot, WebPage } from './worlds/web/session.ts'
export { type ShopTask, webShop } from './worlds/web/sites/shop.ts'
export { type TrackerTask, webTracker } from './worlds/web/sites/tracker.ts'
export {
  type WebDefinition,
  type WebOptions,
  type WebReport,
  type WebWorld,
  web,
} from './worlds/web/web.ts'
export { containerWorkspaces } from './worlds/workspaces/container.ts'
export {
  type Put,
  usualFolder,
  usualLimits,
  type Workspace,
  type WorkspaceLimits,
  type WorkspaceSource,
  type Workspaces,
} from './worlds/workspaces/contract.ts'
export { localWorkspaces } from './worlds/workspaces/local.ts'
export { type RemoteOptions, remoteWorkspaces } from './worlds/workspaces/remote.ts'
export { type DaytonaOptions, daytonaWorkspaces } from './worlds/workspaces/vendors/daytona.ts'
export { type E2bOptions, e2bWorkspaces } from './worlds/workspaces/vendors/e2b.ts'
export type { VendorOptions } from './worlds/workspaces/vendors/workspaces.ts'
export type { WorkspaceOptions } from './worlds/workspaces/world/open.ts'
export { workspaceTools } from './worlds/workspaces/world/tools.ts'
