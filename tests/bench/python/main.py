"""The function as somebody would write it with Python's SDK, for comparison."""

import pathlib

import click
from crossplane.function import cli

import fn
import user_data


@click.command()
@cli.standard_options
@click.option("--user-data-files", envvar="USER_DATA_FILES", type=pathlib.Path)
def main(user_data_files, **options):
    """Serve the function."""
    files = user_data.read_constant_files(user_data_files)
    cli.run(fn.FunctionRunner(files), **options)


if __name__ == "__main__":
    main()
