"""What an operator runs: doctor, migrate, backup, restore, reembed. They open the stores themselves."""
