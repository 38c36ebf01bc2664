import type { ToolDefinition } from '../message.ts';
/** The types of JSON schema that a parameter may have. */
export type ParameterType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null';
/** What a JSON schema says about a value; undefined where nothing is said. */
export type Schema = Readonly<Record<string, unknown>> | undefined;
/** The schema of one parameter; undefined if the tool or the parameter is not declared. */
export declare function parameterSchema(schemas: readonly ToolDefinition[], tool: string, parameter: string): Schema;
/** The schema of an object's property. */
export declare function propertySchema(schema: Schema, property: string): Schema;
/** The schema of an array's items. */
export declare const itemSchema: (schema: Schema) => Schema;
/** Every type that the schema allows; empty where it says none. */
export declare function schemaTypes(schema: Schema, depth?: number): ReadonlySet<ParameterType>;
