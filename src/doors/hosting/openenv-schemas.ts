/** The schemas that an OpenEnv server publishes for worlds whose actions are calls of tools. */
export const openEnvSchemas = {
  action: {
    title: 'CallToolAction',
    type: 'object',
    properties: {
      type: { type: 'string', enum: ['call_tool', 'list_tools'], default: 'call_tool' },
      tool_name: { type: 'string', description: 'Name of the tool to call' },
      arguments: { type: 'object', additionalProperties: true },
      metadata: { type: 'object', additionalProperties: true },
    },
    required: ['tool_name'],
    additionalProperties: false,
  },
  observation: {
    title: 'CallToolObservation',
    type: 'object',
    properties: {
      tool_name: { type: 'string' },
      result: {},
      error: { anyOf: [{ type: 'object' }, { type: 'null' }] },
      metadata: { type: 'object' },
    },
  },
  reset_observation: {
    title: 'Opening',
    type: 'object',
    properties: {
      text: { type: 'string', description: 'What the policy is told first, as one text' },
      messages: { type: 'array', items: { type: 'object' } },
      task_id: { type: 'string' },
      metadata: { type: 'object' },
    },
  },
  state: {
    title: 'State',
    type: 'object',
    properties: {
      episode_id: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      step_count: { type: 'integer' },
      task_id: { type: 'string' },
      done: { type: 'boolean' },
    },
  },
} as const
