/** The control tokens of the embedded model's chat template. */
export const controlTokens = [
  '<|end|>',
  '<|system|>',
  '<|user|>',
  '<|assistant|>',
  '<|tool|>',
  '<|tool_call_start|>',
  '<|tool_call_end|>',
] as const

/** How it writes calls: a Python list between tags, as LFM2 does; few tokens with whole words. */
export const toolFormat = 'lfm2'

/**
 * The embedded model's chat template. Tools are written as `name:parameter,parameter`: every token
 * of a prompt costs a small model as much as one it samples.
 */
export const chatTemplate = `{%- macro words(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- else -%}
        {%- for part in content or [] -%}
            {{- part.text or '' -}}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- set starts_with_system = messages[0].role in ['system', 'developer'] -%}
{%- if tools or starts_with_system -%}
    {{- '<|system|>' -}}
    {%- if starts_with_system -%}
        {{- words(messages[0].content) -}}
    {%- endif -%}
    {%- for tool in tools or [] -%}
        {{- '\\n' if loop.first and starts_with_system else '' if loop.first else ' ' -}}
        {{- tool.function.name -}}
        {%- for name in tool.function.parameters.properties or {} -%}
            {{- (':' if loop.first else ',') + name -}}
        {%- endfor -%}
    {%- endfor -%}
    {{- '<|end|>' -}}
{%- endif -%}
{%- for message in messages -%}
    {%- if message.role == 'assistant' -%}
        {{- '<|assistant|>' + words(message.content) -}}
        {%- for call in message.tool_calls or [] -%}
            {{- '<|tool_call_start|>[' if loop.first else ',' -}}
            {{- call.function.name + '(' -}}
            {%- if call.function.arguments is mapping -%}
                {%- for name, value in call.function.arguments.items() -%}
                    {{- ('' if loop.first else ',') + name + '=' + (value | tojson) -}}
                {%- endfor -%}
            {%- endif -%}
            {{- ')' -}}
            {{- ']<|tool_call_end|>' if loop.last -}}
        {%- endfor -%}
        {{- '<|end|>' -}}
    {%- elif message.role == 'tool' -%}
        {{- '<|tool|>' + words(message.content) + '<|end|>' -}}
    {%- elif not (loop.first and starts_with_system) -%}
        {{- '<|' + ('user' if message.role == 'user' else 'system') + '|>' -}}
        {{- words(message.content) + '<|end|>' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|assistant|>' -}}
{%- endif -%}
`
