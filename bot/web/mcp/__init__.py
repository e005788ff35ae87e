"""The memory over the Model Context Protocol (MCP): the same as over REST, as tools, resources and prompts.

Importing `transport`, `stdio`, `server`, `tools`, `resources` or `prompts` loads the SDK, which takes a second:
`endpoint` and the command line do that when it is needed.
"""
